import HeraldIdentity
import NIOCore

@testable import HeraldListener

extension FuzzTarget {
    static let listener: [FuzzTarget] = [
        FuzzTarget("proxy-header", upTo: 2304, proxyHeader),
        FuzzTarget("client-hello", upTo: 2048, clientHello),
    ]

    /// PROXY headers: the answer never changes with further bytes.
    @Sendable
    private static func proxyHeader(_ bytes: [UInt8]) {
        let whole = header(bytes[...])
        switch whole {
        case .incomplete: check(bytes.count < ProxyHeader.maximumLength, "a header is longer than allowed")
        case .malformed: break
        case .local(let length), .client(_, let length):
            check(
                (16...min(bytes.count, ProxyHeader.maximumLength)).contains(length),
                "a header ends outside the bytes"
            )
            check(header(bytes[..<(length - 1)]) == .incomplete, "a header is complete without its last byte")
        }
        let places = bytes.count <= 64 ? Array(0...bytes.count) : [1, 11, 12, 13, 15, 16, 17, 27, 28, bytes.count / 2]
        for place in places {
            let part = header(bytes[..<place])
            check(part == .incomplete || part == whole, "the header depends on how the bytes are cut")
        }
    }

    private static func header(_ bytes: ArraySlice<UInt8>) -> ProxyHeader {
        ProxyHeader(ByteBuffer(bytes: bytes).readableBytesView)
    }

    /// The first bytes of a TLS client, before TLS reads them.
    @Sendable
    private static func clientHello(_ bytes: [UInt8]) {
        for isSecond in [false, true] {
            var whole = ClientHelloBuffer(isSecond: isSecond)
            let isOver = whole.append(ByteBuffer(bytes: bytes))
            check(whole.bytes.readableBytes == bytes.count, "bytes are lost")
            var pieces = ClientHelloBuffer(isSecond: isSecond)
            let end = bytes.indices.first { pieces.append(ByteBuffer(bytes: bytes[$0...$0])) }
            check((end != nil) == isOver, "the end depends on how the bytes are cut")
            if !isOver || end == bytes.indices.last {
                check(pieces.serverName == whole.serverName, "the name depends on how the bytes are cut")
            }
            guard let name = whole.serverName else { continue }
            check((1...253).contains(name.utf8.count), "a server name of \(name.utf8.count) bytes")
            check(name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a server name that is not printable ASCII")
        }
        _ = ClientHello.isAskedForAgain(by: ByteBuffer(bytes: bytes))
        if let alert = TLSAlert(record: bytes) { check(!alert.name.isEmpty, "an alert without a name") }
    }
}
