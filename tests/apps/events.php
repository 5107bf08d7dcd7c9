<?php
// An event for each line of the fifo named by the query.
while (ob_get_level())
	ob_end_flush(); // Debian's php.ini keeps 4096 bytes back
header('Content-Type: text/event-stream');
$lines = fopen($_SERVER['QUERY_STRING'], 'r');
while (($line = fgets($lines)) !== false) {
	echo 'data: ', rtrim($line), "\n\n";
	flush();
}
