<?php
// An application that may show its clients what is left.
header('Content-Type: text/plain');
echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['REQUEST_URI'], ' from ',
    $_SERVER['REMOTE_ADDR'], "\n";
echo $_SERVER['RATELIMIT_REMAINING'] ?? '?', ' of ',
    $_SERVER['RATELIMIT_LIMIT'] ?? '?', " left\n";
