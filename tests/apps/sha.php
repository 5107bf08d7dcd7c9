<?php
// How long the body is said to be, and the digest of what came.
header('Content-Type: text/plain');
$hash = hash_init('sha256');
$in = fopen('php://input', 'r');
while (($piece = fread($in, 65536)) !== false && $piece !== '')
	hash_update($hash, $piece);
echo $_SERVER['CONTENT_LENGTH'] ?? 'none', ' ', hash_final($hash), "\n";
