<?php // What PHP takes for the field `user_name` of a form.
header('Content-Type: text/plain');
$value = $_POST['user_name'] ?? '';
echo is_string($value) ? $value : '';
