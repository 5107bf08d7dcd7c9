<?php
// An application that knows nothing of limits.
header('Content-Type: text/plain');
echo $_SERVER['REQUEST_METHOD'], ' ', $_SERVER['REQUEST_URI'], ' from ',
    $_SERVER['REMOTE_ADDR'], "\n";
