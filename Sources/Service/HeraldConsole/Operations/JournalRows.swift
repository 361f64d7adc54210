import Foundation
import HTTPTypes
import HeraldJSON
import HeraldMailbox
import HeraldModel

// Rows of the journal, and of what was caught.
extension AdminAPI {
    static let journalRows: [OperationRow] = [
        journal.row, searchJournal.row, notificationLife.row, tallies.row, caught.row, removeCaught.row,
        caughtMessage.row, setCatch.row, send.row,
    ]

    package static let journal = AdminOperation<NoContent, [JournalEntry]>(
        .get,
        "journal",
        takes: [journalID, journalDevice, journalTopic, journalLimit],
        role: .viewer,
        says: "Outcomes of notifications, oldest line first; the newest ones if there are more than `limit`.",
        answer: """
            The lines. If the journal has ever deleted lines, for their age or for its size, the field \
            `herald-complete-since` has the time since which it has all. In a cluster the field `herald-missing-nodes` \
            names the nodes that did not answer within 2 s, with commas between them; their lines are missing.
            """,
        more: """
            Give exactly one of `id`, `device` and `topic`. A node of a cluster answers with the lines of all nodes.
            """
    )
    package static let journalID = Parameter(
        "id",
        ["type": "string", "format": "uuid"],
        "An `apns-id` or `apns-unique-id`."
    ) { text in
        guard let id = NotificationID(text) else {
            throw AdminError(.badRequest, "id must be an apns-id or apns-unique-id: a UUID like 2f7ca8f4-….")
        }
        return JournalQuestion.notification(id)
    }
    package static let journalDevice = Parameter("device", ["type": "string"], "A device's identifier.") { text in
        guard let device = DeviceID(text) else {
            throw AdminError(.badRequest, "device must be a device's identifier")
        }
        return JournalQuestion.device(device)
    }
    package static let journalTopic = Parameter("topic", ["type": "string"], "A topic, in both environments.") { text in
        guard let topic = Topic(text) else {
            throw AdminError(.badRequest, "topic must be a topic like com.example.app")
        }
        return JournalQuestion.topic(topic)
    }
    /// Range and default of the number of lines in one answer.
    package static let journalLimits = 1...10_000
    package static let journalDefault = 1000
    package static let journalLimit = Parameter("limit", journalLimits, standard: journalDefault, "The most lines.")

    package static let searchJournal = AdminOperation<JournalSearchRequest, JournalSearchAnswer>(
        .post,
        "journal/search",
        role: .viewer,
        .reads,
        says: "Lines of the journal that a search finds, newest first; in a cluster those of all nodes.",
        answer: "A page of lines.",
        more: """
            A page ends after 150 ms of search, perhaps without a line; `cursor` goes on from there. The search is in the \
            body, so that no device token is in an address. A caller with four searches at once gets 429 with `retry-after`.
            """
    )
    package static let notificationLife = AdminOperation<NoContent, JournalLife>(
        .get,
        "journal/{id}",
        takes: [Ask.notification, lifeWait, lifeGoal],
        role: .viewer,
        says: "The life of one notification, with what each line means.",
        answer: "Its lines, whether or not it has come to what `until` says.",
        fails: [404]
    )
    package static let lifeWait = Parameter(
        wait: "wait",
        most: 60,
        """
        Seconds to wait until the notification is as `until` says. It answers as soon as it is. Too many waiting requests get \
        429 with `retry-after`.
        """
    )
    package static let lifeGoal = Parameter<JournalLife.Goal>("until", standard: .final, "The state to wait for.")

    package static let tallies = AdminOperation<NoContent, TallyAnswer>(
        .get,
        "tallies",
        takes: [tallyApp, Ask.environment, tallyFrom, tallyTo, tallyGroup, tallyOutcome],
        role: .viewer,
        says: "Exact numbers of journal lines by hour.",
        answer: "The numbers.",
        more: """
            They are kept for 90 days, longer than most journals, and count every line once, also after a crash. Each line \
            counts: a notification has one with the outcome `received`, one for each time that it was stored, and one for its \
            end. In a cluster the numbers are those of all nodes; `missing_nodes` names the ones that did not answer.
            """
    )
    static let tallyApp = Ask.topic(
        "app",
        "A topic; without it the lines of all apps, and of refused requests for a topic that no app has."
    )
    static let tallyFrom = Parameter(
        "from",
        ["type": "string"],
        """
        The first moment, whose whole hour is included: a time, or a duration before now (`-7d`). At most 31 days before \
        `to`. Without it a day before now.
        """
    ) { $0 }
    static let tallyTo = Parameter(
        "to",
        ["type": "string"],
        "The end, whose whole hour is included; without it now."
    ) { $0 }
    static let tallyGroup = Parameter<TallyQuestion.Group>(
        "by",
        standard: .outcome,
        "The property by which lines count apart; `state` has the words of `herald journal`."
    )
    static let tallyOutcome = Parameter<JournalOutcome>(
        "outcome",
        "Lines with one outcome only. Without it those with all; by type or priority, those `received`."
    )

    package static let caught = AdminOperation<NoContent, CaughtAnswer>(
        .get,
        "caught",
        takes: [caughtQuery, caughtWait, caughtCount, caughtUntil, caughtLimit],
        role: .sender,
        .readsPayloads,
        says: "The requests of providers that this node caught, newest first.",
        answer: "The matching messages.",
        fails: [409]
    )
    package static let removeCaught = AdminOperation<NoContent, CaughtRemoval>(
        .delete,
        "caught",
        takes: [caughtQuery],
        role: .sender,
        says: "Forgets the matching messages.",
        answer: "Their number."
    )
    package static let caughtMessage = AdminOperation<NoContent, CaughtEntry>(
        .get,
        "caught/{id}",
        takes: [Ask.notification],
        role: .sender,
        .readsPayloads,
        says: "The newest message with an identifier.",
        answer: "The message.",
        fails: [404]
    )
    package static let setCatch = AdminOperation<CatchRequest, CatchingState>(
        .put,
        "catch",
        role: .admin,
        says: "Changes what this node catches, until it stops. `off` forgets all messages.",
        answer: "The present state.",
        fails: [409]
    )
    static let caughtQuery = Parameter(
        "q",
        ["type": "string", "maxLength": 512, "examples": ["tag:login-test"]],
        """
        Terms that must all hold, like `tag:login-test -status:200`. The keys are `id`, `tag`, `topic`, `device`, \
        `provider`, `status` and `reason`; a value with spaces stands in quotation marks, and a minus negates a term. A value \
        that no message can have is refused. Without it, all messages.
        """
    ) { $0 }
    static let caughtWait = Parameter(
        wait: "wait",
        most: 60,
        """
        Seconds to wait at most for what `count` and `until` ask for. It answers as soon as that has come; afterwards it \
        answers with what came, and `complete` is false. Too many waiting requests get 429 with `retry-after`.
        """
    )
    static let caughtCount = Parameter(
        "count",
        1...1000,
        standard: 1,
        "Messages that must match before the answer is complete."
    )
    static let caughtUntil = Parameter(
        "until",
        ["type": "string", "maxLength": 512, "examples": ["status:200"]],
        "Terms like those of `q`, which one of the matching messages must match, too, before the answer is complete."
    ) { $0 }
    static let caughtLimit = Parameter("limit", 1...1000, standard: 100, "The most messages of the answer.")

    package static let send = AdminOperation<SendOrder, Never>(
        .post,
        "send",
        role: .sender,
        says: "Sends notifications through this node's provider API, as the provider `console`.",
        answer: "The answer to the recipient, or the answers to a list, in its order.",
        more: "A sender may send in the sandbox only, an admin in both environments. At most 10 requests a second.",
        fails: [404, 409],
        schema: { book in
            let answers: JSON = [
                "oneOf": [try book.schema(of: SendAnswer.self), try book.schema(of: SendAnswers.self)]
            ]
            return ("application/json", answers)
        }
    )
}
