import Logging
import NIOCore
import NIOEmbedded
import Testing

@testable import HeraldListener

private let signature = ProxyHeader.signature

private func header(_ version: UInt8, _ family: UInt8, _ rest: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? rest.count
    return signature + [version, family, UInt8(length >> 8), UInt8(length & 0xFF)] + rest
}

private func address(_ text: String) throws -> ClientAddress {
    try #require(ClientAddress(SocketAddress(ipAddress: text, port: 0)))
}

private let v4: [UInt8] = [192, 0, 2, 7, 10, 0, 0, 1, 0xC3, 0x50, 0x08, 0x95]
private let v6: [UInt8] =
    [0x20, 0x01, 0x0D, 0xB8] + Array(repeating: 0, count: 11) + [9] + Array(repeating: 1, count: 16) + [1, 2, 3, 4]

@Suite struct ProxyHeaderTests {
    private func parse(_ bytes: [UInt8]) -> ProxyHeader {
        ProxyHeader(ByteBuffer(bytes: bytes).readableBytesView)
    }

    @Test func `the source address of a client is read, and further fields are skipped`() throws {
        let client = try address("192.0.2.7")
        #expect(parse(header(0x21, 0x11, v4)) == .client(client, length: 28))
        #expect(parse(header(0x21, 0x11, v4) + [0x16, 3, 1]) == .client(client, length: 28))
        #expect(parse(header(0x21, 0x11, v4 + [4, 0, 1, 0])) == .client(client, length: 32))
        #expect(parse(header(0x21, 0x21, v6)) == .client(try address("2001:db8::9"), length: 52))
    }

    @Test func `a connection of the load balancer itself is told apart`() {
        #expect(parse(header(0x20, 0x00, [])) == .local(length: 16))
        #expect(parse(header(0x20, 0x11, v4)) == .local(length: 28))
        #expect(parse(header(0x20, 0xFF, [1, 2])) == .local(length: 18))
        // PROXY with the family UNSPEC: the proxy does not know the client.
        #expect(parse(header(0x21, 0x00, [])) == .local(length: 16))
    }

    @Test(arguments: [
        ([0x16, 0x03, 0x01], ProxyHeader.Fault.noSignature),
        (Array("PROXY TCP4 192.0.2.7 10.0.0.1 1 2\r\n".utf8), .noSignature),
        (signature.dropLast() + [0x0B], .noSignature),
        (header(0x11, 0x11, v4), .unknownVersion), (header(0x31, 0x11, v4), .unknownVersion),
        (header(0x22, 0x11, v4), .unknownCommand), (header(0x2F, 0x11, v4), .unknownCommand),
        (header(0x21, 0x12, v4), .unknownFamily), (header(0x21, 0x22, v6), .unknownFamily),
        (header(0x21, 0x31, Array(repeating: 0, count: 216)), .unknownFamily), (header(0x21, 0x41, v4), .unknownFamily),
        (header(0x21, 0x11, Array(v4.dropLast())), .tooShort), (header(0x21, 0x21, v4), .tooShort),
        (header(0x21, 0x11, [], length: 0), .tooShort),
        (header(0x21, 0x11, v4, length: 65_535), .tooLong), (header(0x20, 0x00, [], length: 2033), .tooLong),
    ])
    func `anything else is refused as soon as it can be told`(bytes: [UInt8], fault: ProxyHeader.Fault) {
        #expect(parse(bytes) == .malformed(fault))
    }

    @Test func `every beginning of a header waits for the rest`() {
        for whole in [header(0x21, 0x11, v4), header(0x21, 0x21, v6 + [4, 0, 0]), header(0x20, 0x00, [])] {
            for count in 0..<whole.count { #expect(parse(Array(whole.prefix(count))) == .incomplete) }
        }
    }

    /// No input is a trap, and no result claims more bytes than there are.
    @Test func `altered headers are judged within their bytes`() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            var bytes = header(0x21, Bool.random() ? 0x11 : 0x21, Bool.random() ? v4 : v6)
            for _ in 0..<2 { bytes[Int.random(in: 12..<bytes.count, using: &random)] = .random(in: 0...255) }
            bytes.removeLast(Int.random(in: 0...8))
            switch parse(bytes) {
            case .client(_, let length), .local(let length): #expect(length <= bytes.count)
            case .incomplete, .malformed: break
            }
        }
    }
}

@Suite struct ProxyHeaderReaderTests {
    private let channel = EmbeddedChannel()
    private let log = RefusalLog(listener: "test", logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }) {
        _ in
        nil
    }

    private func reader(_ identify: @escaping (ClientAddress?) -> Void = { _ in }) throws {
        let reader = ProxyHeaderReader(timeout: .seconds(5), refusals: log, identify: identify)
        try channel.pipeline.syncOperations.addHandler(reader)
        try channel.connect(to: SocketAddress(ipAddress: "10.0.0.1", port: 1)).wait()
    }

    @Test func `what follows the header is passed on, and the client's address counts`() throws {
        var told: [ClientAddress?] = []
        try reader { told.append($0) }
        for byte in header(0x21, 0x11, v4) { try channel.writeInbound(ByteBuffer(bytes: [byte])) }
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        try channel.writeInbound(ByteBuffer(bytes: [1, 2]))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: [1, 2]))
        #expect(told == [try address("192.0.2.7")])
        #expect(channel.clientAddress?.description == "192.0.2.7")
    }

    @Test func `a health check keeps the load balancer's address`() throws {
        try reader()
        try channel.writeInbound(ByteBuffer(bytes: header(0x20, 0, []) + [9]))
        #expect(try channel.readInbound(as: ByteBuffer.self) == ByteBuffer(bytes: [9]))
        #expect(channel.clientAddress?.description == "10.0.0.1")
    }

    @Test func `a connection without a header is closed, and nothing of it is passed on`() throws {
        try reader()
        try channel.writeInbound(ByteBuffer(bytes: [0x16, 3, 1]))
        _ = try? channel.writeInbound(ByteBuffer(bytes: [1]))
        #expect(try channel.readInbound(as: ByteBuffer.self) == nil)
        #expect(!channel.isActive)
    }

    @Test func `a header that is late closes the connection`() throws {
        try reader()
        try channel.writeInbound(ByteBuffer(bytes: signature))
        channel.embeddedEventLoop.advanceTime(by: .seconds(5))
        #expect(!channel.isActive)
    }
}

@Suite struct AddressRangeTests {
    @Test(arguments: [
        ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.0", false), ("10.1.2.3", "10.1.2.3", true),
        ("10.1.2.3", "10.1.2.4", false), ("0.0.0.0/0", "203.0.113.9", true), ("0.0.0.0/0", "2001:db8::1", false),
        ("fd00::/8", "fdff::1", true), ("fd00::/8", "fe00::1", false), ("2001:db8::/64", "2001:db8::ffff:1", true),
        ("2001:db8::/65", "2001:db8::8000:0:0:1", false), ("::/0", "192.0.2.1", true), ("::1", "::1", true),
        ("::1", "::2", false), ("192.0.2.0/24", "::ffff:192.0.2.9", true),
    ])
    func `a range contains its addresses alone`(range: String, text: String, isInside: Bool) throws {
        let range = try #require(AddressRange(range))
        #expect(range.contains(try address(text)) == isInside)
    }

    @Test(arguments: [
        "", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8", "::/129", "example.com", "10.0.0.0/8/8",
    ])
    func `anything else is not a range`(text: String) {
        #expect(AddressRange(text) == nil)
    }

    @Test(arguments: [("192.0.2.1", "192.0.2.1"), ("::ffff:192.0.2.1", "192.0.2.1"), ("2001:db8::1", "2001:db8::1")])
    func `an address is written as usual`(text: String, words: String) throws {
        #expect(try address(text).description == words)
    }
}
