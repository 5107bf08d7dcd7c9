<?php
// Says nothing for half a second.
usleep(500000);
echo "late\n";
