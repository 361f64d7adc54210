import Foundation
import NIOCore

@testable import HeraldNATS

extension FuzzTarget {
    static let nats: [FuzzTarget] = [
        FuzzTarget("nats-protocol", upTo: 4096, protocolBytes),
        FuzzTarget("nats-answers", upTo: 1024, answers),
        FuzzTarget("nats-settings", upTo: 1024, settings),
    ]

    private struct Reading: Equatable {
        var operations: [ServerOperation] = []
        var error: NATSError?
    }

    /// The server's operations: the same in any pieces, bounded, and a message again as a server writes it.
    @Sendable
    private static func protocolBytes(_ bytes: [UInt8]) {
        let whole = read([bytes[...]])
        for pieces in Pieces.ways(bytes) {
            check(read(pieces) == whole, "the operations depend on how the bytes are cut")
        }
        for case .message(let message) in whole.operations { repeats(message) }
    }

    private static func read(_ pieces: [ArraySlice<UInt8>]) -> Reading {
        var decoder = NATSDecoder(lineBytes: 128, infoBytes: 1024, messageBytes: 2048)
        var reading = Reading()
        do throws(NATSError) {
            for piece in pieces {
                decoder.append(ByteBuffer(bytes: piece))
                while let operation = try decoder.next() { reading.operations.append(operation) }
                check(decoder.pendingBytes <= 128 + 2048 + 2, "the decoder holds more than a message")
            }
        } catch {
            reading.error = error
            decoder.append(ByteBuffer(string: "PING\r\n"))
            check((try? decoder.next()) == nil && decoder.pendingBytes == 0, "a decoder that has failed reads on")
        }
        return reading
    }

    private static func repeats(_ message: NATSMessage) {
        var block = ByteBuffer()
        if message.status != nil || message.headers.lines.readableBytes > 0 {
            block.writeString("NATS/1.0")
            if let status = message.status {
                block.writeString(" \(String(status.code + 1000).dropFirst()) \(status.description)")
            }
            block.writeString("\r\n")
            block.writeImmutableBuffer(message.headers.lines)
            block.writeString("\r\n")
        }
        // A header may end in the midst of a line, which only the empty line ends.
        let lines = message.headers.lines.readableBytesView
        guard lines.isEmpty || lines.suffix(2).elementsEqual([0x0D, 0x0A]) else { return }
        var line = ByteBuffer(string: "HMSG ")
        line.writeImmutableBuffer(message.subjectBytes)
        line.writeString(" \(message.subscription) ")
        if let replyTo = message.replyToBytes { line.writeImmutableBuffer(replyTo) }
        line.writeString(" \(block.readableBytes) \(block.readableBytes + message.payload.readableBytes)\r\n")
        line.writeImmutableBuffer(block)
        line.writeImmutableBuffer(message.payload)
        line.writeString("\r\n")
        var decoder = NATSDecoder(lineBytes: 4096, infoBytes: 4096, messageBytes: 4096)
        decoder.append(line)
        let again = try? decoder.next()
        check(again == .some(.message(message)), "a message is not read as it was written")
        check(decoder.pendingBytes == 0, "bytes are left over")
        let fields = message.headers.fields
        check(fields.allSatisfy { !$0.name.contains("\n") && !$0.value.contains("\n") }, "a field has a line break")
    }

    /// Answers of JetStream: the scanner agrees with Foundation's JSON.
    @Sendable
    private static func answers(_ bytes: [UInt8]) {
        let buffer = ByteBuffer(bytes: bytes)
        let scanned = buffer.withUnsafeReadableBytes(PublishAnswer.scan)
        if scanned != nil {
            let object = (try? JSONSerialization.jsonObject(with: Data(bytes))) as? [String: Any]
            let error = object?["error"] as? [String: Any]
            switch scanned {
            case .stored(let sequence):
                check((object?["seq"] as? NSNumber)?.uint64Value == sequence, "the scanner reads another sequence")
                check(object?["stream"] is String && error == nil, "the scanner takes an error for an acknowledgement")
            case .refused(let refusal):
                check(error?["code"] as? Int == refusal.status, "the scanner reads another status")
                check(error?["err_code"] as? Int == refusal.code, "the scanner reads another code")
                check(error?["description"] as? String == refusal.description, "the scanner reads other words")
            case nil: break
            }
        }
        if case .stored(let sequence) = PublishAnswer(buffer) {
            check(sequence > 0, "an acknowledgement without a sequence")
        }
        _ = try? JSONDecoder().decode(StreamInfo.self, from: Data(bytes))
        let refusal = JetStreamRefusal(
            status: 400,
            code: JetStreamRefusal.wrongLastSequence,
            description: String(decoding: bytes, as: UTF8.self)
        )
        _ = refusal.lastSequence
        var place = ByteBuffer(string: "$JS.ACK.S.c.")
        place.writeBytes(bytes)
        if let found = ConsumerPlace(place) {
            let text = "$JS.ACK.S.c.1.\(found.sequence).\(found.number).1.\(found.pending)"
            check(ConsumerPlace(ByteBuffer(string: text)) == found, "a place is not read as it was written")
        }
    }

    /// Settings of an operator: addresses and credentials.
    @Sendable
    private static func settings(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        if let address = try? NATSServerAddress(text) {
            check((try? NATSServerAddress(address.description)) == address, "an address has a second meaning")
        }
        if let decoded = Base32.decode(text) {
            check(Base32.encode(decoded) == text, "base 32 has a second spelling")
        }
        if let key = try? NKey(seed: text) {
            check(key.publicKey.hasPrefix("U") && key.publicKey.count == 56, "a public key is not a user's")
        }
        _ = try? NATSCredential(creds: text)
        check(!SubjectRules.isSubject(text) || SubjectRules.isFilter(text), "a subject is not a filter")
        if SubjectRules.isFilter(text) {
            check(!text.utf8.contains { $0 <= 0x20 }, "a subject has a space")
        }
    }
}
