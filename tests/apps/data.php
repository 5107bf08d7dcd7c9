<?php
// 300,000 bytes, two cookies, and what an authorizer told of the limit.
header('Content-Type: application/octet-stream');
header('Set-Cookie: a=1', false);
header('Set-Cookie: b=2', false);
header('X-Told: ' . ($_SERVER['RATELIMIT_REMAINING'] ?? 'nothing'));
echo str_repeat('0123456789', 30000);
