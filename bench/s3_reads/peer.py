# bench/s3_reads/peer.py URL KEY SECRET BUCKET CONNECTIONS - reads what it is told with boto3 and a pool of threads.
#
# Standard input: the keys, one a line, then an empty line; then one line a pass. Says the seconds of each pass.
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import boto3
from botocore.config import Config

url, key, secret, bucket, connections = sys.argv[1:6]
s3 = boto3.client("s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1",
                  config=Config(max_pool_connections=int(connections), s3={"addressing_style": "path"}))
keys = []
for line in sys.stdin:
    if not line.strip():
        break
    keys.append(line.strip())
with ThreadPoolExecutor(int(connections)) as pool:
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        for body in pool.map(lambda k: s3.get_object(Bucket=bucket, Key=k)["Body"].read(), keys):
            assert len(body) == 150_000
        print(time.perf_counter() - start, flush=True)
