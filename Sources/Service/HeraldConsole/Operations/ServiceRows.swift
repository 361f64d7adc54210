import Foundation
import HTTPTypes
import HeraldJSON
import HeraldMailbox
import HeraldModel

// Rows of the service itself, its clock, its drills and what happens at this moment.
extension AdminAPI {
    static let serviceRows: [OperationRow] = [
        status.row, problems.row, refusals.row, series.row, events.row, clock.row, advanceClock.row, acceptClock.row,
        drills.row, startDrill.row, stopDrills.row, stopDrill.row, renewDrill.row,
    ]

    package static let status = AdminOperation<NoContent, ServiceStatus>(
        .get,
        "status",
        role: .viewer,
        says: "State of the service."
    )

    package static let problems = AdminOperation<NoContent, LiveItems<Problem>>(
        .get,
        "problems",
        takes: [history],
        role: .viewer,
        says: "What is wrong or unusual, since when, why it matters, and what to do.",
        answer: "The problems; the present ones alone oldest first, with the history newest first."
    )
    static let history = Parameter(
        "history",
        ["enum": ["0", "1"], "default": "0"],
        "1 adds the last 200 problems that are over, which are kept in memory."
    ) { text in
        guard text == "0" || text == "1" else { throw AdminError(.badRequest, "history must be 0 or 1") }
        return text == "1"
    }

    package static let refusals = AdminOperation<NoContent, LiveItems<RefusalEntry>>(
        .get,
        "refusals",
        role: .viewer,
        says: "Refused requests, in groups of provider, topic, environment and reason.",
        answer: "The groups, the last seen first.",
        more:
            "Kept in memory since the start, at most 1,024 groups; the journal has the lines. Each node of a cluster has its own."
    )

    package static let series = AdminOperation<NoContent, SeriesAnswer>(
        .get,
        "series",
        takes: [seriesRange, seriesNames],
        role: .viewer,
        says: "The recent values of the service's main metrics, for charts.",
        more: """
            They are kept in memory, and begin with the process. Each node of a cluster has its own. Rates are numbers a \
            second; names that end in `_p50` and `_p99` are the values that this percentage did not exceed. The last value is \
            that of a step that is not over.
            """
    )
    static let seriesRange = Parameter<SeriesRange>(
        "range",
        standard: .quarterHour,
        "15 minutes in steps of a second, 24 hours in minutes, or 30 days in quarters of an hour."
    )
    static let seriesNames = Parameter(
        "names",
        ["type": "string"],
        "Names of series with commas between them, for example `received,delivered`; without it, all."
    ) { text in
        let names = text.split(separator: ",").map(String.init)
        guard !names.isEmpty, names.allSatisfy(SeriesRecorder.names.contains) else {
            let known = SeriesRecorder.names.joined(separator: ", ")
            throw AdminError(.badRequest, "names must be names of series with commas between them: \(known)")
        }
        return names
    }

    package static let events = AdminOperation<NoContent, Never>(
        .get,
        "events",
        takes: [eventKinds, eventSearch, lastEvent],
        role: .viewer,
        says: "What happens, as server-sent events; the answer does not end.",
        answer: "The events.",
        more: """
            Events are `problems` (at the beginning and on a change: as in `/v1/problems`, without the wrapping object), \
            `status` (at the beginning and when the answer of `/v1/status` has other environments, drills or catches, or the \
            clock is moved; with a new `version`), `caught` (at the beginning and after each message: the number of the \
            `newest`), `lines` (new lines of this node's journal, oldest first: at most 60 in `items`, and how many `more` \
            there were), `skipped` (the client was too slow, or came back too late; `count` lines at least) and `counts` (once \
            a second: the newest values of the series). There are at most four messages a second. The first `counts` follows \
            all that there is at the beginning: a client that looks in now and then leaves after it, and comes back with its \
            `id`. A comment comes each 15 seconds.
            """,
        schema: { _ in ("text/event-stream", ["type": "string"]) }
    )
    static let eventKinds = Parameter(
        "want",
        ["type": "string", "examples": ["counts,lines"]],
        "Kinds of events with commas between them; without it, all."
    ) { text in
        let words = text.split(separator: ",")
        let kinds = words.compactMap { LiveEvents.Kind(rawValue: String($0)) }
        guard !words.isEmpty, kinds.count == words.count else {
            let names = LiveEvents.Kind.allCases.map(\.rawValue).joined(separator: ", ")
            throw AdminError(.badRequest, "want must be kinds of events with commas between them: \(names)")
        }
        return Set(kinds)
    }
    static let eventSearch = Parameter("q", ["type": "string"], "A search, which restricts the lines.") { $0 }
    static let lastEvent = Parameter(
        "Last-Event-ID",
        ["type": "string"],
        "The `id` of the last event that a client saw; the lines go on there, for about 20 seconds.",
        isHeader: true
    ) { $0 }

    package static let clock = AdminOperation<NoContent, ClockReading>(
        .get,
        "clock",
        role: .viewer,
        says: "The service's time."
    )
    package static let advanceClock = AdminOperation<ClockAdvance, ClockReading>(
        .post,
        "clock/advance",
        role: .admin,
        says: "Moves the service's clock; only with `--clock`, for tests.",
        fails: [409]
    )
    package static let acceptClock = AdminOperation<NoContent, ClockReading>(
        .post,
        "clock/accept",
        role: .admin,
        says: "Accepts the machine's clock after a jump; Herald deletes notifications that have expired by it."
    )

    package static let drills = AdminOperation<NoContent, [DrillEntry]>(
        .get,
        "drills",
        role: .viewer,
        says: "The active drills."
    )
    package static let startDrill = AdminOperation<DrillRequest, DrillEntry>(
        .post,
        "drills",
        role: .drills,
        says: "Starts a drill; senders may, too, with the setting `console-drills`.",
        fails: [409]
    )
    package static let stopDrills = AdminOperation<NoContent, [DrillEntry]>(
        .post,
        "drills/stop",
        role: .drills,
        says: "Stops all drills; senders may, too, with the setting `console-drills`."
    )
    package static let stopDrill = AdminOperation<NoContent, DrillEntry>(
        .post,
        "drills/{id}/stop",
        takes: [drill],
        role: .drills,
        says: "Stops a drill; senders may, too, with the setting `console-drills`.",
        fails: [404]
    )
    package static let renewDrill = AdminOperation<NoContent, DrillEntry>(
        .post,
        "drills/{id}/renew",
        takes: [drill],
        role: .drills,
        says: "Gives a drill with a `lease` its whole time again; senders may, too, with the setting `console-drills`.",
        fails: [404]
    )
    package static let drill = Parameter("id", ["type": "string"], "An identifier, as the list shows it.") { text in
        guard let id = Int(text) else {
            throw AdminError(.badRequest, "the identifier of a drill is a number: see `herald drill list`")
        }
        return id
    }
}
