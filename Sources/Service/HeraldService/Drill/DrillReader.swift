import Foundation
package import HeraldConsole
package import HeraldGateway
package import HeraldModel

/// A mistake in the description of a drill.
package struct DrillMistake: Error, Equatable {
    package let text: String
}

/// Parses drills: for the command line, the admin API and the configuration.
package enum DrillReader {
    /// The duration of a drill that names none.
    static let usualDuration = Duration.seconds(60)

    /// Reads and checks a drill; `slot` opens a device token, nil if it is not this service's.
    /// - Throws: ``DrillMistake``.
    package static func drill(_ request: DrillRequest, slot: (DeviceToken) -> Slot?) throws(DrillMistake) -> Drill {
        try checkUse(request)
        let kind = try kind(request)
        let lease = try span(request.lease, "lease", DrillLimits.lease)
        let duration = try span(request.for, "for", DrillLimits.duration) ?? usualDuration
        return Drill(
            kind: kind,
            target: try target(request, slot),
            share: try share(request.share),
            first: try first(request.first),
            duration: lease ?? duration,
            isLease: lease != nil,
            seed: request.seed ?? UInt64(UInt32.random(in: .min ... .max))
        )
    }

    /// Checks a description without opening its token.
    package static func check(_ request: DrillRequest) throws(DrillMistake) {
        _ = try drill(request) { _ in Slot(device: DeviceNumber(0), app: AppNumber(0)) }
    }

    /// Refuses options that the kind does not have.
    private static func checkUse(_ request: DrillRequest) throws(DrillMistake) {
        let uses: [(String, Bool, [String])] = [
            ("reason", request.reason != nil, ["refuse", "goaway"]),
            ("status", request.status != nil, ["refuse"]),
            ("retry-after", request.retryAfter != nil, ["refuse"]),
            ("latency", request.latency != nil, ["latency"]),
            ("accepted", request.accepted != nil, ["silence", "reset"]),
            ("two-step", request.twoStep != nil, ["goaway"]),
            ("streams", request.streams != nil, ["streams"]),
            ("every", request.every != nil, ["streams"]),
            ("share", request.share != nil, Drill.Kind.names.filter { $0 != "streams" }),
            ("first", request.first != nil, Drill.Kind.names.filter { $0 != "streams" }),
            ("topic", request.topic != nil, Drill.Kind.names.filter { $0 != "streams" }),
            ("token", request.token != nil, Drill.Kind.names.filter { $0 != "streams" }),
        ]
        for (name, isGiven, kinds) in uses where isGiven && !kinds.contains(request.kind) {
            guard Drill.Kind.names.contains(request.kind) else { break }
            throw DrillMistake(text: "\(name) has no effect on a drill of the kind \(request.kind)")
        }
        guard request.topic == nil || request.token == nil else {
            throw DrillMistake(text: "use topic or token, not both: a token already belongs to one topic")
        }
        guard request.for == nil || request.lease == nil else {
            throw DrillMistake(text: "use for or lease, not both: a lease lasts as long as it is renewed")
        }
    }

    private static func kind(_ request: DrillRequest) throws(DrillMistake) -> Drill.Kind {
        switch request.kind {
        case "refuse":
            let retryAfter = try span(request.retryAfter, "retry-after", DrillLimits.retryAfter)
            if let status = request.status { return try refusal(as: status, request.reason, retryAfter) }
            guard let reason = try reason(request.reason) else {
                throw DrillMistake(text: "refuse needs a reason, like Unregistered, or a status, like 502")
            }
            return .refuse(reason, retryAfter: retryAfter)
        case "latency": return .latency(try latency(request.latency))
        case "silence": return .silence(isAccepted: request.accepted ?? false)
        case "reset": return .reset(isAccepted: request.accepted ?? false)
        case "refuse-stream": return .refuseStream
        case "goaway": return .goAway(try reason(request.reason), isTwoStep: request.twoStep ?? false)
        case "streams":
            let count = request.streams ?? 1
            guard DrillLimits.streams.contains(count) else {
                throw DrillMistake(text: "streams is a number from 1 to \(DrillLimits.streams.upperBound)")
            }
            return .streams(count, period: try span(request.every, "every", DrillLimits.period))
        case "drop": return .drop
        case "shutdown": return .shutdown
        default:
            let kinds = Drill.Kind.names.joined(separator: ", ")
            let given = LogText.escaped(request.kind, limit: 64)
            throw DrillMistake(text: "\"\(given)\" is not a kind of drill: the kinds are \(kinds)")
        }
    }

    private static func refusal(
        as status: Int,
        _ reason: String?,
        _ retryAfter: Duration?
    ) throws(DrillMistake)
        -> Drill.Kind
    {
        guard DrillLimits.status.contains(status) else {
            throw DrillMistake(text: "status is a number from 400 to 599: a drill never claims success")
        }
        guard reason.map({ (1...DrillLimits.reasonBytes).contains($0.utf8.count) }) ?? true else {
            let rest = "leave it out for an answer without a body"
            throw DrillMistake(text: "a reason has 1 to \(DrillLimits.reasonBytes) bytes: \(rest)")
        }
        return .refuseAs(status: status, reason: reason, retryAfter: retryAfter)
    }

    private static func reason(_ text: String?) throws(DrillMistake) -> RefusalReason? {
        guard let text else { return nil }
        guard let refusalReason = RefusalReason.allCases.first(where: { $0.reason.lowercased() == text.lowercased() })
        else {
            let some = "BadDeviceToken, Unregistered, TooManyRequests, InternalServerError or ServiceUnavailable"
            let given = LogText.escaped(text, limit: 64)
            throw DrillMistake(
                text: "reason \"\(given)\" is not a reason of APNs: write \(some), or refuse with a status and any text"
            )
        }
        return refusalReason
    }

    private static func latency(_ text: String?) throws(DrillMistake) -> ClosedRange<Duration> {
        guard let text else { throw DrillMistake(text: "latency needs a time, like 500ms, or a range, like 200ms..2s") }
        let parts = text.components(separatedBy: "..")
        guard parts.count <= 2, let low = try span(parts[0], "latency", DrillLimits.latency) else {
            throw DrillMistake(text: "latency is a time, like 500ms, or a range, like 200ms..2s")
        }
        let high = parts.count == 2 ? try span(parts[1], "latency", DrillLimits.latency) ?? low : low
        guard low <= high else { throw DrillMistake(text: "a range of latency begins with the shorter time") }
        return low...high
    }

    private static func target(
        _ request: DrillRequest,
        _ slot: (DeviceToken) -> Slot?
    ) throws(DrillMistake)
        -> Drill.Target
    {
        if let text = request.topic {
            guard let topic = Topic(text) else { throw DrillMistake(text: "topic must be like com.example.app") }
            return .topic(topic)
        }
        guard let text = request.token else { return .everybody }
        guard let token = DeviceToken(text) else {
            throw DrillMistake(text: "a device token is 64 hexadecimal digits")
        }
        guard let place = slot(token) else {
            throw DrillMistake(text: "this service did not issue the device token")
        }
        return .slot(place)
    }

    private static func share(_ text: String?) throws(DrillMistake) -> Double {
        guard let text else { return 1 }
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), percent >= 0.001, percent <= 100 else {
            throw DrillMistake(text: "share must be from 0.001% to 100%, like 20%")
        }
        return percent / 100
    }

    private static func first(_ count: Int?) throws(DrillMistake) -> Int? {
        guard count.map(DrillLimits.first.contains) ?? true else {
            throw DrillMistake(text: "first is a number from 1 to \(DrillLimits.first.upperBound)")
        }
        return count
    }

    private static func span(
        _ text: String?,
        _ name: String,
        _ range: ClosedRange<Duration>
    ) throws(DrillMistake)
        -> Duration?
    {
        guard let text else { return nil }
        guard let span = DurationText.read(text), range.contains(span) else {
            let bounds = "\(range.lowerBound.components.seconds)s to \(range.upperBound.components.seconds)s"
            throw DrillMistake(text: "\(name) is a time from \(bounds)")
        }
        return span
    }
}
