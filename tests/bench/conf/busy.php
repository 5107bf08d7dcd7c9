<?php
usleep(2000);
header('Content-Type: text/plain');
echo "Hello.\n";
