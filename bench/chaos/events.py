"""The receiver of webhooks on the first host."""

import http.server
import json
import threading
import time

PORT = 7580


class Events:
    """What webhooks told, with the time of their arrival."""

    def __init__(self, network):
        self.all = []
        events = self.all

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if len(body) < int(self.headers["Content-Length"]):
                    return  # its sender was killed, or its cable pulled
                events.append((time.time(), json.loads(body)))
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_):
                pass

        with network.inside():
            self.server = http.server.ThreadingHTTPServer(("0.0.0.0", PORT), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
