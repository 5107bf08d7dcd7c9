<?php
foreach (range(1, 20) as $n)
	header("Set-Cookie: c$n=v$n", false);
header('X-Mark: one');
http_response_code(201);
echo 'cookies';
