import ArgumentParser
package import HeraldConsole

/// Options of a drill: of `herald drill start`, and of the configuration's list.
package struct DrillOptions: ParsableArguments {
    @Argument(help: "The kind: refuse, latency, silence, reset, refuse-stream, goaway, streams, drop or shutdown.")
    var kind: String

    @Option(help: ArgumentHelp("The reason of a refusal (with its status), or of a GOAWAY.", valueName: "reason"))
    var reason: String?

    @Option(
        help: ArgumentHelp(
            "With refuse: this status, 400 to 599, with any reason, or without a body.",
            valueName: "n"
        )
    )
    var status: Int?

    @Option(help: ArgumentHelp("The share of requests that it affects. (default: 100%)", valueName: "percent"))
    var share: String?

    @Option(help: ArgumentHelp("Affect this many requests at most, and then none.", valueName: "n"))
    var first: Int?

    @Option(help: ArgumentHelp("Only notifications to this topic.", valueName: "id"))
    var topic: String?

    @Option(help: ArgumentHelp("Only notifications to this device token.", valueName: "hex"))
    var token: String?

    @Option(help: ArgumentHelp("The delay of answers: 500ms, or 200ms..2s.", valueName: "time"))
    var latency: String?

    @Option(help: ArgumentHelp("The retry-after of the refusal, instead of the usual one.", valueName: "time"))
    var retryAfter: String?

    @Flag(help: "With silence and reset: accept and deliver the notification. (default: lose it)")
    var accepted = false

    @Flag(help: "With goaway: send a first GOAWAY that ignores no stream yet.")
    var twoStep = false

    @Option(help: ArgumentHelp("With streams: the limit of concurrent streams. (default: 1)", valueName: "n"))
    var streams: Int?

    @Option(help: ArgumentHelp("With streams: alternate with the usual limit this often.", valueName: "time"))
    var every: String?

    @Option(
        name: .customLong("for"),
        help: ArgumentHelp("How long the drill lasts, 1s to 1h. (default: 60s)", valueName: "time")
    )
    var duration: String?

    @Option(
        help: ArgumentHelp(
            "Instead of --for: end this long after the last `herald drill renew`, 1s to 60s.",
            valueName: "time"
        )
    )
    var lease: String?

    @Option(help: ArgumentHelp("The same seed and order of requests affect the same requests.", valueName: "n"))
    var seed: UInt64?

    package init() {}

    /// The requested drill.
    package var request: DrillRequest {
        var request = DrillRequest(kind: kind)
        request.reason = reason
        request.status = status
        request.share = share
        request.first = first
        request.topic = topic
        request.token = token
        request.latency = latency
        request.retryAfter = retryAfter
        request.accepted = accepted ? true : nil
        request.twoStep = twoStep ? true : nil
        request.streams = streams
        request.every = every
        request.for = duration
        request.lease = lease
        request.seed = seed
        return request
    }

    /// Reads a drill of the configuration, which says how long it lasts.
    /// - Throws: ``CommandError/Code/configuration``.
    static func configured(_ text: String) throws -> DrillRequest {
        do {
            let options = try DrillOptions.parse(text.split(separator: " ").map(String.init))
            guard options.duration != nil else {
                throw DrillMistake(text: "a drill of the configuration needs its duration, like --for 10m")
            }
            try DrillReader.check(options.request)
            return options.request
        } catch {
            let why = (error as? DrillMistake)?.text ?? DrillOptions.message(for: error)
            // Nothing of the text itself: it may hold a device token.
            throw CommandError(
                .configuration,
                "drill: \(why): write for example `refuse --reason Unregistered --share 5% --for 10m`"
            )
        }
    }
}
