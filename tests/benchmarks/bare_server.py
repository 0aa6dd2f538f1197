"""The baseline: a gRPC server that receives export requests, looks at nothing, and answers. Prints
its port.
"""

from __future__ import annotations

import asyncio

import grpc


async def main() -> None:
    """Serve until killed."""

    async def discard(_: bytes, __: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        return b""

    server = grpc.aio.server(options=(("grpc.max_receive_message_length", 16 << 20),))
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(discard)
    service = "opentelemetry.proto.collector.trace.v1.TraceService"
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(service, {"Export": handler}),)
    )
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    print(port, flush=True)
    await server.wait_for_termination()


if __name__ == "__main__":
    asyncio.run(main())
