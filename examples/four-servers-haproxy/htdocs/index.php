<?php
// An application that knows nothing of limits.
header('Content-Type: text/plain');
echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['REQUEST_URI'], ' for ',
    $_SERVER['HTTP_X_FORWARDED_FOR'], ' on ', $_SERVER['SERVER_ADDR'], ', ',
    strtok($_SERVER['SERVER_SOFTWARE'], '/'), "\n";
