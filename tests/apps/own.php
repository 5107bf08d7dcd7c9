<?php
// Sends the headers named by its query: name=value&...
foreach (explode('&', urldecode($_SERVER['QUERY_STRING'])) as $line)
	header(preg_replace('/=/', ': ', $line, 1), false);
echo 'own';
