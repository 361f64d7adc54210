import HeraldModel
import NIOCore

@testable import HeraldGateway

extension FuzzTarget {
    static let gateway: [FuzzTarget] = [
        FuzzTarget("http2", upTo: 8192, http2),
        FuzzTarget("payload-drill", upTo: 2048, payloadDrill),
    ]

    /// The HTTP/2 session of a provider, from bytes to requests and back.
    @Sendable
    private static func http2(_ bytes: [UInt8]) {
        let whole = HTTP2Check.requests([bytes[...]])
        for pieces in Pieces.ways(bytes) where pieces.count <= 512 {
            let cut = HTTP2Check.requests(pieces)
            // libnghttp2 counts each piece of the header of a CONTINUATION frame as a frame.
            let holds = cut == whole || cut.isStoppedByContinuations && whole.requests.starts(with: cut.requests)
            check(holds, "the requests depend on how the bytes are cut: \(cut), not \(whole)")
            HTTP2Check.converse(pieces)
        }
        HTTP2Check.converse([bytes[...]])
    }

    @Sendable
    private static func payloadDrill(_ bytes: [UInt8]) {
        _ = try? PayloadDrill.read(bytes)
        if case .success = ChannelParser.storage(bytes, byteCount: bytes.count) {
            check(PayloadScanner.survey(bytes).isObject, "the body of a channel is not an object")
        }
    }
}

/// A client that sends any bytes.
private enum HTTP2Check {
    /// Everything that the gateway reads from one request.
    struct Reading: Equatable {
        let route: RequestRoute
        let refusals: [Refusal?]
        let token: DeviceToken?
        let fields: RequestParser.Fields
        let body: [UInt8]
        let bodyByteCount: Int

        init(_ request: PendingRequest) {
            let fields = request.fields
            route = RequestRoute(fields)
            var parsed = RequestParser.Fields()
            var refusals = [RequestParser.route(fields), RequestParser.tokenIsMissing(fields)]
            // The token is read only from a path that has one.
            token = refusals == [nil, nil] ? RequestParser.token(fields) : nil
            refusals.append(RequestParser.read(fields, into: &parsed))
            refusals.append(ChannelParser.checkRequestID(fields))
            refusals.append(ChannelParser.checkPushType(fields))
            if case .failure(let refusal) = ChannelParser.expiration(fields) { refusals.append(refusal) }
            if case .failure(let refusal) = ChannelParser.priority(fields) { refusals.append(refusal) }
            if case .failure(let refusal) = ChannelParser.channelID(fields, inPath: nil) { refusals.append(refusal) }
            refusals.append(RequestParser.checkLength(request.received.byteCount, kind: parsed.pushType ?? .alert))
            self.refusals = refusals
            self.fields = parsed
            body = request.body
            bodyByteCount = request.received.byteCount
            check(body.count <= bodyByteCount, "a body is longer than what arrived")
            check(body.count <= HTTP2Limits().bodyBytes, "a body is longer than what is kept")
            check(
                parsed.collapseID.map { id in
                    (1...64).contains(id.text.utf8.count) && id.text.unicodeScalars.allSatisfy(\.isAllowedInMQTT)
                } ?? true,
                "a collapse identifier is not an MQTT string"
            )
        }
    }

    struct Outcome: Equatable {
        var requests: [Reading] = []
        var end: SessionEnd?
        var hasSettings = false

        /// `NGHTTP2_ERR_TOO_MANY_CONTINUATIONS`, for which older headers of the library have no name.
        var isStoppedByContinuations: Bool { end == .failed(-905) }
    }

    private static func session(_ memory: BodyMemory) -> HTTP2Session {
        guard
            let session = try? HTTP2Session(
                limits: HTTP2Limits(),
                streams: 100,
                bodies: memory,
                now: .uptimeNanoseconds(0)
            )
        else { fatalError("broken property: no session") }
        return session
    }

    /// The requests of a client that reads nothing meanwhile.
    static func requests(_ pieces: [ArraySlice<UInt8>]) -> Outcome {
        let memory = BodyMemory(limit: 1 << 20)
        var outcome = Outcome()
        do {
            let session = session(memory)
            for piece in pieces {
                let end = piece.withUnsafeBytes { session.receive($0, now: .uptimeNanoseconds(1)) }
                if end != nil { break }
            }
            while let request = session.nextRequest() {
                outcome.requests.append(Reading(request))
                session.reply(to: request, .accepted)
            }
            outcome.end = session.end
            outcome.hasSettings = session.hasClientSettings
        }
        check(memory.current == 0, "a session keeps memory for bodies")
        return outcome
    }

    /// Answers each request at once, as the gateway does, and moves the time to every deadline.
    static func converse(_ pieces: [ArraySlice<UInt8>]) {
        let memory = BodyMemory(limit: 1 << 20)
        do {
            let session = session(memory)
            var sent = 0
            var received = 0
            var answers = 0
            for (index, piece) in pieces.enumerated() {
                received += piece.count
                let now = NIODeadline.uptimeNanoseconds(UInt64(index) * 1_000_000)
                let end = piece.withUnsafeBytes { session.receive($0, now: now) }
                while let request = session.nextRequest() {
                    answers += 1
                    session.reply(to: request, reply(to: request))
                }
                sent += drained(session)
                session.consume()
                if end != nil { break }
            }
            for seconds in [11, 31, 62] as [UInt64] {
                _ = session.sweep(now: .uptimeNanoseconds(seconds * 1_000_000_000))
                sent += drained(session)
            }
            session.goAway(Array(#"{"reason":"Shutdown"}"#.utf8))
            sent += drained(session)
            check(sent <= 1024 + 32 * received + 512 * answers, "\(sent) bytes answer \(received)")
            _ = session.isOver
        }
        check(memory.current == 0, "a session keeps memory for bodies")
    }

    private static func reply(to request: PendingRequest) -> Reply {
        request.received.isDropped || request.body.isEmpty
            ? Reply(status: ReplyStatus(rawValue: 400), body: Array(#"{"reason":"PayloadEmpty"}"#.utf8)) : .accepted
    }

    /// Takes all frames, and checks that they are whole.
    private static func drained(_ session: HTTP2Session) -> Int {
        var buffer = ByteBuffer()
        var rounds = 0
        while session.drain(into: &buffer, upTo: buffer.readableBytes + 4096) {
            rounds += 1
            check(rounds < 10_000, "a session has no end of frames")
        }
        if session.end != nil { session.writeLastFrame(into: &buffer) }
        let count = buffer.readableBytes
        while buffer.readableBytes > 0 {
            let head: UInt32 = buffer.readInteger() ?? 0
            let rest = buffer.readBytes(length: 5 + Int(head >> 8))
            check(rest != nil, "a frame is not whole")
            if rest == nil { break }
        }
        return count
    }
}
