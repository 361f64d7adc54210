import HeraldJSON
import HeraldModel

/// The member `herald` of a payload, beside `aps`.
enum HeraldMember {
    /// Reads as deep as a drill goes, so that no depth of what stands beside it matters.
    private static let rules = JSON.Rules(isLenient: true, maximumDepth: .max, keptDepth: 4)

    /// The member of a payload that is a JSON object; nil without it.
    static func read(_ payload: [UInt8]) -> JSON? {
        JSON.Object(payload, rules: rules)?["herald"]
    }

    /// The tag of a request with this field.
    static func tag(_ field: String?, _ payload: [UInt8]) -> String? {
        CatchTag.kept(field ?? read(payload)?.members?["tag"]?.text)
    }

    /// The names of the members that ask for a drill: `drill`, or a misspelt one.
    static func drills(in members: JSON.Object) -> [String] {
        members.filter { $0.value != .null && LikelyKey.to($0.name, in: ["drill", "tag"]) == "drill" }.map(\.name)
    }

    /// Whether a member asks for a drill, well-formed or not.
    static func asksForDrill(_ herald: JSON) -> Bool {
        guard let members = herald.members else { return herald != .null }
        return !drills(in: members).isEmpty
    }
}
