#!/usr/bin/python3
"""Stands in for the guestbook's page, guestbook.php: it writes to Redis' leader, and reads from its followers."""
import http.server, json, os, subprocess, urllib.parse


def redis(role, *args):
    host = os.environ["REDIS_%s_SERVICE_HOST" % role]
    return subprocess.run(["redis-cli", "-h", host, *args], check=True, capture_output=True, text=True, timeout=5).stdout.rstrip("\n")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        url = urllib.parse.urlparse(self.path)
        query = dict(urllib.parse.parse_qsl(url.query))
        body = {}
        if query.get("cmd") == "set":
            redis("LEADER", "SET", query["key"], query["value"])
            body = {"message": "Updated"}
        elif query.get("cmd") == "get":
            body = {"data": redis("FOLLOWER", "GET", query["key"])}
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())


http.server.ThreadingHTTPServer(("", 80), Handler).serve_forever()
