<?php
// What PHP sees of the request.
header('Content-Type: application/json');
echo json_encode($_SERVER);
