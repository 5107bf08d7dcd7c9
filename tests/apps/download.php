<?php
// The file named by the query.
header('Content-Type: application/octet-stream');
$in = fopen($_SERVER['QUERY_STRING'], 'r');
while (($piece = fread($in, 65536)) !== false && $piece !== '')
	echo $piece;
