<?php
// Sends until nobody listens. It writes its pid to the file named by the
// query, takes it away at its end, and ends when others do.
$file = $_SERVER['QUERY_STRING'];
register_shutdown_function(function () use ($file) { @unlink($file); });
file_put_contents("$file.new", getmypid());
rename("$file.new", $file);
header('Content-Type: application/octet-stream');
while (file_exists($file)) {
	echo str_repeat('x', 8192);
	flush();
	usleep(10000);
	clearstatcache();
}
