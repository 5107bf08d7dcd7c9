<?php
// The limiter that an application runs itself: one EVALSHA on a persistent
// connection.
$redis = new Redis();
$redis->pconnect('@{redis}');
[$allowed, $remaining, $reset] = $redis->evalSha('@{sha1}',
	['@{name}:' . $_SERVER['REMOTE_ADDR'], @{limit}, 3600000], 1);
header('X-RateLimit-Limit: @{limit}');
header("X-RateLimit-Remaining: $remaining");
header("X-RateLimit-Reset: $reset");
header('Content-Type: text/plain');
if (!$allowed) {
	http_response_code(429);
	header("Retry-After: $reset");
	echo "429 Too Many Requests\n";
	exit;
}
echo "Hello.\n";
