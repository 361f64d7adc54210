import HeraldTrust
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
        let buffer = ByteBuffer(bytes: bytes)
        let isComplete = ClientHello.isComplete(buffer)
        check(isComplete || bytes.count < 5 + 16_384 + 256, "a record is longer than allowed")
        if bytes.count > 1, ClientHello.isComplete(ByteBuffer(bytes: bytes.dropLast())) {
            check(isComplete, "a complete record becomes incomplete")
        }
        if let name = ClientHello.serverName(in: buffer) {
            check((1...253).contains(name.utf8.count), "a server name of \(name.utf8.count) bytes")
            check(name.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }, "a server name that is not printable ASCII")
        }
        if let alert = TLSAlert(record: bytes) { check(!alert.name.isEmpty, "an alert without a name") }
    }
}
