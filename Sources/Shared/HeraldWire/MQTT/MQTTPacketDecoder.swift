package import NIOCore

/// Cuts a stream of bytes into packets and reads them.
///
/// 1. Bytes may come in any pieces. An incomplete packet is copied to a buffer of the decoder's own, which keeps no receive
///    buffer alive. Without an incomplete packet there is no buffer.
/// 2. It holds no more than the largest allowed packet and the bytes of one read. A longer packet is refused by its first
///    bytes (0x95), before it has been sent.
/// 3. A decoder that awaits CONNECT refuses everything else by the first byte ([MQTT-3.1.0-1]), and learns the version
///    from CONNECT.
/// 4. After an error it returns nothing more ([MQTT-3.1.4-6]).
package struct MQTTPacketDecoder: Sendable {
    /// The version that is spoken; nil before CONNECT.
    package private(set) var version: MQTTVersion?
    /// The version in which a CONNECT can be refused: its own, or the nearest one to the version that it asked for.
    ///
    /// Nil as long as the peer has not shown that it speaks MQTT.
    package private(set) var refusalVersion: MQTTVersion?
    /// Bytes of the longest packet that is read, fixed header included.
    package var maximumPacketSize: Int
    private var pending: ByteBuffer?
    /// Whether `pending` is the decoder's own copy.
    private var isPendingOwned = false
    private var hasFailed = false

    /// A server's decoder: awaits CONNECT.
    /// - Parameter maximumPacketSize: The limit until the owner sets another, once it knows the peer.
    package init(awaitingConnectUpTo maximumPacketSize: Int) {
        self.maximumPacketSize = maximumPacketSize
    }

    /// A client's decoder: it knows the version that it asked for.
    package init(version: MQTTVersion, maximumPacketSize: Int) {
        self.version = version
        self.maximumPacketSize = maximumPacketSize
    }

    /// Bytes that have not become a packet yet.
    package var pendingBytes: Int { pending?.readableBytes ?? 0 }

    /// Takes bytes as they come; then call ``next()`` until it returns nil.
    package mutating func append(_ bytes: ByteBuffer) {
        guard !hasFailed, bytes.readableBytes > 0 else { return }
        guard var kept = pending.take() else {
            pending = bytes
            isPendingOwned = false
            return
        }
        if isPendingOwned {
            kept.discardReadBytes()
        } else {
            kept = ByteBuffer(kept.readableBytesView, reserving: kept.readableBytes + bytes.readableBytes)
        }
        kept.writeImmutableBuffer(bytes)
        pending = kept
        isPendingOwned = true
    }

    /// The next whole packet, or nil if more bytes are needed.
    /// - Throws: ``MQTTError`` if the bytes are not a packet.
    package mutating func next() throws(MQTTError) -> MQTTPacket? {
        guard !hasFailed else { return nil }
        do {
            guard let head = try head() else {
                keepRemainder()
                return nil
            }
            guard var body = pending?.readSlice(length: head.packetLength) else {
                keepRemainder()
                return nil
            }
            body.moveReaderIndex(forwardBy: head.length)
            releaseIfEmpty()
            return try packet(head, MQTTReader(body))
        } catch {
            hasFailed = true
            pending = nil
            throw error
        }
    }

    /// Takes the next packet if it is a PUBACK with plain success, and returns its packet identifier; nil for every other.
    ///
    /// Nearly all packets of devices are such: two bytes of head, two of identifier, and in MQTT 5 sometimes the code 0 and
    /// an empty list of properties.
    package mutating func nextAcknowledgement() -> UInt16? {
        guard version != nil, let bytes = pending else { return nil }
        let start = bytes.readerIndex
        guard let head = bytes.getInteger(at: start, as: UInt32.self), head >> 24 == 0x40 else { return nil }
        let identifier = UInt16(truncatingIfNeeded: head)
        guard identifier != 0 else { return nil }
        let remainingLength = Int(head >> 16 & 0xFF)
        switch remainingLength {
        case 2: break
        case 3 where version == .v5 && bytes.getInteger(at: start + 4, as: UInt8.self) == 0: break
        case 4 where version == .v5 && bytes.getInteger(at: start + 4, as: UInt16.self) == 0: break
        default: return nil
        }
        pending?.moveReaderIndex(forwardBy: 2 + remainingLength)
        releaseIfEmpty()
        return identifier
    }

    /// The fixed header (MQTT 5 §2.1).
    private struct Head {
        let kind: MQTTPacketKind
        let flags: UInt8
        /// Bytes of the fixed header.
        let length: Int
        /// Bytes of the packet, fixed header included.
        let packetLength: Int
    }

    /// Reads the fixed header without consuming it; throws at the first wrong byte.
    private func head() throws(MQTTError) -> Head? {
        guard let bytes = pending, let first = bytes.getInteger(at: bytes.readerIndex, as: UInt8.self) else {
            return nil
        }
        guard let kind = MQTTPacketKind(rawValue: first >> 4), kind != .auth || version != .v311 else {
            throw .malformed("a packet of a kind that does not exist")
        }
        guard version != nil || kind == .connect else { throw .protocolError("the first packet is not CONNECT") }
        // [MQTT-2.1.3-1]
        guard kind.fixedFlags == nil || kind.fixedFlags == first & 0x0F else {
            throw .malformed("a packet has a reserved flag set")
        }
        var remainingLength = 0
        for index in 0..<4 {
            let position = bytes.readerIndex + 1 + index
            guard let next = bytes.getInteger(at: position, as: UInt8.self) else { return nil }
            remainingLength |= Int(next & 0x7F) << (7 * index)
            guard next & 0x80 == 0 else { continue }
            guard next != 0 || index == 0 else { throw MQTTReader.notMinimal }
            let length = 2 + index
            guard length + remainingLength <= maximumPacketSize else {
                throw MQTTError(.packetTooLarge, "a packet is larger than \(maximumPacketSize) bytes")
            }
            return Head(kind: kind, flags: first & 0x0F, length: length, packetLength: length + remainingLength)
        }
        throw .malformed("a remaining length has more than four bytes")
    }

    private mutating func packet(_ head: Head, _ body: MQTTReader) throws(MQTTError) -> MQTTPacket {
        var body = body
        if let version {
            return try body.packet(head.kind, flags: head.flags, version: version)
        }
        let start = try body.protocolNameAndLevel()
        let version = try agree(on: start)
        let connect = try body.connect(version)
        self.version = version
        return .connect(connect)
    }

    /// The version that both speak ([MQTT-3.1.2-1], [MQTT-3.1.2-2]).
    ///
    /// `MQIsdp` is the protocol name of the versions before 3.1.1.
    private mutating func agree(on start: MQTTReader.ProtocolLevel) throws(MQTTError) -> MQTTVersion {
        let isMQTT = start.name.utf8.elementsEqual("MQTT".utf8)
        if isMQTT || start.name.utf8.elementsEqual("MQIsdp".utf8) {
            refusalVersion = isMQTT && start.level >= MQTTVersion.v5.rawValue ? .v5 : .v311
        }
        guard isMQTT, let version = MQTTVersion(rawValue: start.level) else {
            throw MQTTError(.unsupportedProtocolVersion, "the peer speaks neither MQTT 5 nor 3.1.1")
        }
        return version
    }

    private mutating func keepRemainder() {
        guard !isPendingOwned, let bytes = pending else { return }
        pending = bytes.readableBytes > 0 ? ByteBuffer(bytes.readableBytesView, reserving: bytes.readableBytes) : nil
        isPendingOwned = pending != nil
    }

    private mutating func releaseIfEmpty() {
        if pending?.readableBytes == 0 { pending = nil }
    }
}

extension ByteBuffer {
    /// A copy with room for more.
    fileprivate init(_ bytes: ByteBufferView, reserving capacity: Int) {
        self = ByteBufferAllocator().buffer(capacity: capacity)
        writeBytes(bytes)
    }
}
