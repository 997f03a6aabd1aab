"""Register the public keys of many nodes with the SuperLink in one process.

``python -m cafe.flower.lab.registration KEY...`` does what ``flwr supernode register`` does for
each file. It imports Flower once, which takes most of the time of that command, and prints a line
of JSON for each key.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cafe.flower.lab.commands import CONNECTION
from cafe.flower.program import LIMITS
from cafe.flower.retry_interceptor import RetryInterceptor, install


def main() -> None:
    """Register the keys that the command line names."""
    import httpx
    from flwr.cli.flower_config import read_superlink_connection
    from flwr.cli.supernode.register import try_load_public_key
    from flwr.cli.utils import init_http_client_from_connection
    from flwr.proto.control_pb2 import RegisterNodeRequest

    install(RetryInterceptor(LIMITS["flwr"]))
    client = init_http_client_from_connection(read_superlink_connection(CONNECTION))
    for path in sys.argv[1:]:
        request = RegisterNodeRequest(public_key=try_load_public_key(Path(path)))
        try:
            said = {"node-id": str(client.RegisterNode(request).node_id)}
        except httpx.HTTPStatusError as error:
            said = {"error": f"{error} {error.response.text}"}
        except httpx.HTTPError as error:
            said = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps({"key": path, **said}), flush=True)
    client.close()


if __name__ == "__main__":
    main()
