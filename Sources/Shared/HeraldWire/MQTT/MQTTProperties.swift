/// The properties of a packet in the order in which they were sent; empty in 3.1.1.
package struct MQTTProperties: Hashable, Sendable, ExpressibleByArrayLiteral {
    package var entries: [MQTTProperty]

    package init(_ entries: [MQTTProperty] = []) {
        self.entries = entries
    }

    package init(arrayLiteral elements: MQTTProperty...) {
        entries = elements
    }

    package var isEmpty: Bool { entries.isEmpty }

    package mutating func append(_ property: MQTTProperty) {
        entries.append(property)
    }

    /// The first value that `select` finds.
    private func first<Value>(_ select: (MQTTProperty) -> Value?) -> Value? {
        for entry in entries {
            if let value = select(entry) { return value }
        }
        return nil
    }
}

extension MQTTProperties {
    package var messageExpiryInterval: UInt32? {
        first { if case .messageExpiryInterval(let value) = $0 { value } else { nil } }
    }
    package var subscriptionIdentifier: UInt32? {
        first { if case .subscriptionIdentifier(let value) = $0 { value } else { nil } }
    }
    package var sessionExpiryInterval: UInt32? {
        first { if case .sessionExpiryInterval(let value) = $0 { value } else { nil } }
    }
    package var serverKeepAlive: UInt16? { first { if case .serverKeepAlive(let value) = $0 { value } else { nil } } }
    package var authenticationMethod: String? {
        first { if case .authenticationMethod(let value) = $0 { value } else { nil } }
    }
    /// Whether every answer may carry reason strings and user properties; nil means yes (MQTT 5 §3.1.2.11.7).
    package var requestProblemInformation: UInt8? {
        first { if case .requestProblemInformation(let value) = $0 { value } else { nil } }
    }
    package var reasonString: String? { first { if case .reasonString(let value) = $0 { value } else { nil } } }
    package var serverReference: String? { first { if case .serverReference(let value) = $0 { value } else { nil } } }
    package var receiveMaximum: UInt16? { first { if case .receiveMaximum(let value) = $0 { value } else { nil } } }
    package var topicAlias: UInt16? { first { if case .topicAlias(let value) = $0 { value } else { nil } } }
    package var maximumPacketSize: UInt32? {
        first { if case .maximumPacketSize(let value) = $0 { value } else { nil } }
    }

    /// The properties without those that are text for people.
    var withoutText: MQTTProperties {
        MQTTProperties(
            entries.filter { property in
                switch property {
                case .reasonString, .userProperty: false
                default: true
                }
            }
        )
    }

    /// The values of all user properties of this name, in their order; names are compared byte for byte.
    package func userProperties(named name: String) -> [String] {
        entries.compactMap { entry in
            guard case .userProperty(let candidate, let value) = entry else { return nil }
            return candidate.utf8.elementsEqual(name.utf8) ? value : nil
        }
    }
}
