import NIOCore

/// The header of the PROXY protocol, version 2 (https://www.haproxy.org/download/2.9/doc/proxy-protocol.txt, §2.2).
///
/// A function of bytes: signature of 12 bytes, version and command, address family and transport, length of the rest,
/// addresses and ports, further fields. The further fields (TLV) are skipped.
enum ProxyHeader: Equatable {
    /// More bytes are needed.
    case incomplete
    /// The bytes are not a header that Herald accepts.
    case malformed(Fault)
    /// A connection of the proxy itself, like a health check: its own address counts.
    case local(length: Int)
    /// A connection of a client.
    case client(ClientAddress, length: Int)

    enum Fault: String {
        case noSignature = "the connection does not begin with a PROXY protocol header of version 2"
        case unknownVersion = "the PROXY protocol header is of another version than 2"
        case unknownCommand = "the PROXY protocol header has an unknown command"
        case unknownFamily = "the PROXY protocol header is not of a TCP connection over IPv4 or IPv6"
        case tooShort = "the PROXY protocol header is too short for its addresses"
        case tooLong = "the PROXY protocol header is too long"
    }

    static let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
    /// Maximum length of a whole header; load balancers add some hundred bytes to the addresses.
    static let maximumLength = 2048
    private static let fixedLength = 16

    init(_ bytes: ByteBufferView) {
        guard bytes.prefix(Self.signature.count).elementsEqual(Self.signature.prefix(bytes.count)) else {
            self = .malformed(.noSignature)
            return
        }
        guard bytes.count >= Self.fixedLength else {
            self = .incomplete
            return
        }
        self = Self.read(ByteBuffer(bytes))
    }

    private static func read(_ bytes: ByteBuffer) -> ProxyHeader {
        var bytes = bytes
        bytes.moveReaderIndex(forwardBy: signature.count)
        guard let (version, family, rest) = bytes.readMultipleIntegers(as: (UInt8, UInt8, UInt16).self) else {
            return .incomplete
        }
        let length = fixedLength + Int(rest)
        guard version >> 4 == 2 else { return .malformed(.unknownVersion) }
        guard version & 0xF <= 1 else { return .malformed(.unknownCommand) }
        guard length <= maximumLength else { return .malformed(.tooLong) }
        let isLocal = version & 0xF == 0
        let addressBytes: Int
        switch (isLocal, family) {
        // The receiver ignores the family of LOCAL, and the addresses of UNSPEC.
        case (true, _), (false, 0x00): addressBytes = 0
        case (false, 0x11): addressBytes = 12
        case (false, 0x21): addressBytes = 36
        default: return .malformed(.unknownFamily)
        }
        guard rest >= addressBytes else { return .malformed(.tooShort) }
        guard bytes.readableBytes >= rest else { return .incomplete }
        switch addressBytes {
        case 12:
            guard let source: UInt32 = bytes.readInteger() else { return .incomplete }
            return .client(ClientAddress(ipv4: source), length: length)
        case 36:
            guard let (high, low) = bytes.readMultipleIntegers(as: (UInt64, UInt64).self) else { return .incomplete }
            return .client(ClientAddress(high: high, low: low), length: length)
        default:
            return .local(length: length)
        }
    }
}
