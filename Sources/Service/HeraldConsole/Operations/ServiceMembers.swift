package import HeraldJSON
package import HeraldModel
package import HeraldWeb

// Words about members of the service, the journal, drills and tests.

extension WebFailure: Described {
    package static let members: [String: Fact] = ["error": "The error and its remedy."]
}

extension HealthReport: Described {
    package static let members: [String: Fact] = [
        "notes": "Facts that need no mending."
    ]
}

extension ServiceStatus: Described {
    package static let members: [String: Fact] = [
        "started": .time,
        "now": .time("The service's time."),
        "hostname": "The first configured name of the host.",
        "environments": "Those that have apps.",
        "mode": "Extent of the console.",
        "drills": "Active drills of this node, oldest first.",
        "catching": "The payloads that are caught; absent if none are.",
        "clock_moved_seconds": "How far an operator has moved the clock; absent if not at all.",
        "disk_free_bytes": "On the disk of the data folder.",
        "journal": "The times of this node's journal; absent if it is empty.",
    ]
}

extension Problem: Described {
    package static let members: [String: Fact] = [
        "kind": ["examples": ["disk"]],
        "since": .time,
        "until": .time("Absent while it lasts."),
        "link": "A place in the manual.",
    ]
}

extension RefusalEntry: Described {
    package static let members: [String: Fact] = [
        "provider": "The credential; absent if none was known.",
        "topic": "Empty if the requests named none.",
        "reason": ["examples": ["TopicDisallowed"]],
        "count": ["minimum": 1],
        "first last": .time,
        "share": ["maximum": 1, "description": "Of the provider's requests of the last hour."],
        "per_minute": "The last hour, oldest minute first.",
        "samples": "The last five, newest first.",
    ]
}

extension SeriesAnswer: Described {
    package static let members: [String: Fact] = [
        "step_seconds": ["minimum": 1],
        "end": .time("The end of the last step; absent in the first second."),
        "series": "Values by name, oldest first; null where unknown.",
    ]
}

extension TallyAnswer: Described {
    package static let members: [String: Fact] = [
        "from to": .time,
        "sums": "The numbers of all hours together.",
        "hours": "Hours with lines, oldest first.",
        "missing_nodes": "Nodes of the cluster that did not answer.",
    ]
}

extension JournalSearchRequest: Described {
    package static let members: [String: Fact] = [
        "q": [
            "maxLength": 2000, "examples": ["topic:com.example.app state:discarded after:-2h"],
            "description": """
            Terms with the keys `topic`, `state`, `device`, `provider`, `reason`, `type`, `priority`, `id`, \
            `environment`, `after` and `before`, as in `topic:com.example.app -state:delivered after:-2h`. Terms \
            with different keys must all hold, of those with the same key one. A minus negates a term, and a \
            value with spaces stands in quotation marks. A word without a key is an identifier, a device token, \
            a topic or a device. Without terms, all lines.
            """,
        ],
        "after": ["examples": ["-2h", "2026-11-22T10:00"], "description": "As `after:`."],
        "before": "As `before:`.",
        "limit": ["minimum": 1, "maximum": 1000, "default": 100],
        "cursor": "That of the page before.",
    ]
}

extension JournalSearchAnswer: Described {
    package static let members: [String: Fact] = [
        "cursor": .orNull("The place of the next page; null after the last."),
        "complete": "Whether everything was searched.",
        "searched_back_to": .orNull("The earliest time that the search has come to; null if it is complete."),
        "missing_nodes": "Nodes of the cluster that did not answer.",
    ]
}

extension JournalLife: Described {
    package static let members: [String: Fact] = [
        "id": .uuid,
        "lines": "Oldest first.",
        "final": "Whether nothing more happens to it.",
        "state": "The state of the newest line.",
        "words": "The same lines in plain words.",
    ]
}

extension JournalEntry: Described {
    package static let members: [String: Fact] = [
        "time": .time,
        "id": .uuid("`apns-id`."),
        "unique_id": .uuid("`apns-unique-id`."),
        "device": "Empty in a line about a broadcast.",
        "state": ["examples": ["stored", "delivered from storage"]],
        "reason": ["examples": ["device offline"]],
        "replacement": .uuid("The `apns-id` of the notification that replaced it."),
        "devices": "Number of devices that a broadcast was sent to.",
        "provider": """
        The credential of the provider, as `/v1/credentials` names it; on lines `received` and `refused`, if \
        it is known.
        """,
        "type": "`apns-push-type` of the request; on the same lines, if it is known.",
        "priority": [
            "enum": [1, 5, 10], "description": "`apns-priority` of the request; on the same lines, if it is known.",
        ],
        "size": "Bytes of the request's payload; on the same lines.",
        "status": [
            "minimum": 400, "maximum": 599,
            "description": "HTTP status of a refused request; `reason` is that of its answer.",
        ],
        "explanation": "The fault of a refused request and its remedy, as with `herald-explain: 1`.",
        "node": "The node of a cluster that wrote the line.",
    ]
}

extension ClockReading: Described {
    package static let members: [String: Fact] = [
        "now": .time,
        "milliseconds": "Since 1970.",
        "jump_seconds": "Jump of the machine's clock that nobody has accepted yet.",
    ]
}

private let drillKinds: Fact = [
    "enum": ["refuse", "latency", "silence", "reset", "refuse-stream", "goaway", "streams", "drop", "shutdown"]
]

extension DrillRequest: Described {
    package static let members: [String: Fact] = [
        "kind": drillKinds,
        "reason": [
            "examples": ["Unregistered"],
            "description": "A reason of APNs; with a status any text, or absent for an answer without a body.",
        ],
        "status": ["minimum": 400, "maximum": 599, "description": "Status of a refusal; without it, the reason's."],
        "share": ["examples": ["20%"], "description": "Share of the requests; without it, all."],
        "token": ["pattern": "^[0-9a-fA-F]{64}$", "description": "A device token; no log and no list contains it."],
        "latency": ["examples": ["500ms", "200ms..2s"]],
        "retry_after": ["examples": ["30s"]],
        "accepted": "Whether Herald accepts the requests that it does not answer.",
        "two_step": "Whether a GOAWAY that ignores no stream precedes the usual one.",
        "streams": ["minimum": 1, "description": "Stream limit that connections announce."],
        "every": ["examples": ["10s"], "description": "Interval at which that limit and the usual one alternate."],
        "for": ["default": "60s"],
        "first": [
            "minimum": 1, "maximum": 1_000_000,
            "description": "The most requests that it affects, in a cluster at each node; without it, all.",
        ],
        "lease": [
            "examples": ["30s"],
            "description": """
            In place of `for`, the time after which it ends unless it is renewed, by the machine's clock.
            """,
        ],
    ]
}

extension DrillEntry: Described {
    package static let members: [String: Fact] = [
        "id": ["minimum": 1],
        "kind": drillKinds,
        "what": "The drill in words.",
        "from": ["enum": ["operator", "configuration"]],
        "started ends": .time,
        "hits": "Number of affected requests; in a cluster, of all nodes that answered.",
        "nodes": "In a cluster, the nodes at which it is active, of those that answered.",
    ]
}

extension CaughtEntry: Described {
    package static let members: [String: Fact] = [
        "id": """
        `apns-id`, or `apns-request-id` of a broadcast; absent at the binary interface if refused.
        """,
        "unique_id": .uuid,
        "time": .time,
        "interface": ["enum": ["http2", "binary"]],
        "topic": "Empty if it is unknown.",
        "device": "Empty if it is unknown.",
        "provider": "The credential of the provider.",
        "status": """
        The status of the answer; at the binary interface that of the error response, 0 for none; absent \
        without an answer.
        """,
        "reason": ["examples": ["BadDeviceToken"]],
        "retry_after": "`retry-after` of the answer, in seconds.",
        "answered": .time("The time of the answer, also of one that a drill delays; absent without an answer."),
        "headers": "The fields that Herald reads, without `authorization` and the path.",
        "tag": "The field `herald-tag`, or `herald.tag` of the payload.",
        "findings": "Findings of the check of the payload.",
    ]
}

extension CatchingState: Described {
    package static let members: [String: Fact] = [
        "until": .time("Absent if it lasts until the service stops."),
        "limit": "The most messages that are kept; the newest win.",
    ]
}

extension SendOrder.Recipient: Described {
    package static let members: [String: Fact] = [
        "device": "A device's identifier.",
        "token": "A device token.",
        "channel": "`apns-channel-id`.",
        "topic": "The topic with the suffix of its push type; of a channel the bundle identifier.",
    ]
}

extension SendAnswer: Described {
    package static let members: [String: Fact] = [
        "status": "Absent without an answer."
    ]
}

extension PayloadQuestion: Described {
    package static let members: [String: Fact] = [
        "payload": "An object, or a text that is looked at byte for byte.",
        "push_type": ["default": "alert", "description": "`apns-push-type`."],
        "languages": ["maxItems": 16, "description": "For a preview; without it, English."],
    ]
}

extension TallyAnswer.Hour: Described {
    package static let members: [String: Fact] = [
        "time": .time("The beginning of the hour.")
    ]
}

extension JournalLife.Words: Described {
    package static let members: [String: Fact] = [
        "time": .time,
        "hint": "Cause or consequence, and what to do; may be empty.",
    ]
}

extension RefusalEntry.Sample: Described {
    package static let members: [String: Fact] = [
        "time": .time,
        "id": .uuid,
    ]
}

extension ServiceStatus.Journal: Described {
    package static let members: [String: Fact] = [
        "first last": .time
    ]
}

extension ClockAdvance: Described {
    package static let members: [String: Fact] = [
        "seconds": [
            "minimum": -3_155_760_000, "maximum": 3_155_760_000,
            "description": "May have a fraction; negative moves the clock back.",
        ]
    ]
}

extension CatchRequest: Described {
    package static let members: [String: Fact] = [
        "minutes": ["minimum": 1, "maximum": 1440, "default": 60]
    ]
}

extension CaughtAnswer: Described {
    package static let members: [String: Fact] = [
        "items": "Newest first, at most `limit`.",
        "matches": "All that match, also those beyond `limit`.",
        "complete": "Whether what `count` and `until` ask for has come.",
    ]
}

extension CatchScope: CustomSchema {
    package static var example: CatchScope? { .off }

    package static func schema(_ book: SchemaBook) -> JSON {
        [
            "oneOf": [
                ["enum": ["all", "off"]],
                ["type": "array", "items": ["type": "string"], "minItems": 1, "maxItems": 1000],
            ]
        ]
    }
}

extension PayloadBody: CustomSchema {
    package static var example: PayloadBody? { try? JSON.decode(PayloadBody.self, from: Array("{}".utf8)) }

    package static func schema(_ book: SchemaBook) -> JSON {
        ["type": ["object", "string"], "description": "An object, or a text that is taken byte for byte."]
    }
}

extension SendOrder: CustomSchema {
    package static func schema(_ book: SchemaBook) throws -> JSON {
        let recipient = try book.schema(of: Recipient.self)
        let most = JSON.number(JSON.Number(maximumRecipients))
        let headers =
            "`apns-push-type`, `apns-priority`, `apns-expiration`, `apns-collapse-id`, `apns-id`, `herald-tag`."
        return [
            "type": "object", "additionalProperties": false, "required": ["to", "payload"],
            "properties": [
                "to": [
                    "oneOf": [recipient, ["type": "array", "items": recipient, "minItems": 1, "maxItems": most]]
                ],
                "environment": ["enum": ["production", "sandbox"], "description": "Without it, production."],
                "headers": [
                    "type": "object", "additionalProperties": ["type": "string"], "description": .string(headers),
                ],
                "payload": PayloadBody.schema(book),
            ],
        ]
    }
}
