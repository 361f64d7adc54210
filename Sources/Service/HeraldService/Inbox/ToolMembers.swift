import HeraldConsole
import HeraldJSON

// Words about members of the answers of the tools.

extension PayloadAnswer: Described {
    static let members: [String: Fact] = [
        "compact_size": "The size without white space."
    ]
}

extension TokenAnswer: Described {
    static let members: [String: Fact] = [
        "opens": "Whether it is of this service.",
        "ended": .time,
        "verdict": "The answer that a provider gets.",
    ]
}

extension ProviderTokenAnswer: Described {
    static let members: [String: Fact] = [
        "header claims": "JSON as the token has it.",
        "issued": .time,
        "age_seconds": "Seconds since `iat`; negative if it is ahead of this service's clock.",
        "key_is_known": "Whether the key is registered and not revoked.",
        "reason": ["examples": ["ExpiredProviderToken"]],
        "topics": "The topics of the key; none are all of its team.",
    ]
}

extension FrameAnswer: Described {
    static let members: [String: Fact] = [
        "bytes": ["minimum": 1],
        "rest": "Bytes of an incomplete notification or after a fault.",
    ]
}

extension CertificateAnswer.Item: Described {
    static let members: [String: Fact] = [
        "kind": ["enum": ["certificate", "request"]],
        "key": ["examples": ["P-256", "RSA 2048"]],
        "not_before not_after": .time,
        "accepted": "Whether a provider may connect with it.",
        "explanation": "Why it may not.",
    ]
}

extension FrameAnswer.Item: Described {
    static let members: [String: Fact] = [
        "command": ["enum": [0, 1, 2]],
        "priority": ["enum": [5, 10]],
        "token": "The first digits.",
        "status": "The status of the error response; 0 for none.",
    ]
}

extension PreviewAnswer {
    static func schema(_ book: SchemaBook) -> JSON {
        let what = "By state, then by language; as `herald check --json` writes them. Empty if the payload is refused."
        return [
            "type": "object", "required": ["accepted", "languages", "presentations"], "additionalProperties": false,
            "properties": [
                "accepted": ["type": "boolean"],
                "languages": ["type": "array", "items": ["type": "string"]],
                "presentations": [
                    "type": "array", "description": .string(what),
                    "items": ["type": "object", "required": ["language", "state", "shown", "reasons"]],
                ],
            ],
        ]
    }
}
