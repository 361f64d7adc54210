import HeraldWeb

/// A body whose keys are these and no others.
protocol KnowingItsKeys: Decodable {
    associatedtype CodingKeys: CodingKey, CaseIterable
}

/// Refuses what has another key: one that is misspelt would be taken for one that is not there.
struct KnownKeys<Value: KnowingItsKeys>: Decodable {
    let value: Value

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init(stringValue: String) {
            self.stringValue = stringValue
        }

        init?(intValue: Int) {
            nil
        }
    }

    init(from decoder: any Decoder) throws {
        let known = Value.CodingKeys.allCases.map(\.stringValue)
        let found = try decoder.container(keyedBy: AnyKey.self).allKeys.map(\.stringValue)
        if let stranger = found.filter({ !known.contains($0) }).min() {
            throw WebRefusal(400, "unknown key `\(stranger.prefix(64))`: there are \(known.joined(separator: ", "))")
        }
        value = try Value(from: decoder)
    }
}
