<?php
// Says what it is asked to: ?status=401&cost=7
if (isset($_GET['status'])) {
	http_response_code((int)$_GET['status']);
}
if (isset($_GET['cost'])) {
	header('X-Cost: ' . $_GET['cost']);
}
echo "ok\n";
