import Foundation
import HeraldModel

/// Finds the words that were most likely meant by a wrong one: by meaning first, by spelling last.
package enum NearestWord {
    /// Words of one meaning in a line, Herald's own and those of other tools, the best ones first.
    private static let meanings = """
        host address addr bind listen ip
        topic app app-id application bundle bundle-id package
        alert body message msg text content
        title subject headline
        service server endpoint url uri
        ca cacert cafile authority trust roots
        certificate cert crt pem p12 client
        key p8 private secret
        key-id kid
        team issuer iss
        identity device credential
        token device registration
        name label alias rename tag
        environment env sandbox production development stage
        after in delay time
        data folder dir directory path in db root
        out output file destination to
        payload json file
        database db dsn sqlite postgres postgresql url
        for time duration period lasting
        at when time date on
        wait time timeout
        valid days time validity lifetime ttl expires
        expiration time expires expiry ttl deadline lifetime
        time for by duration to
        since from newer
        until to before
        older-than before age
        limit count max number
        state status outcome
        status state info health ping list show
        search query filter find grep
        follow tail watch
        wait follow watch
        json format
        log-level verbose verbosity debug quiet silent level
        push-type type kind
        kind type
        priority urgency importance
        language locale lang
        dry-run simulate preview
        force yes overwrite replace
        code pin invitation
        version v
        list ls show all get print pending nodes tokens keys
        send push notify publish post
        journal log history events trace
        serve run start begin launch up daemon server boot open
        start refuse latency silence goaway streams shutdown
        stop end finish halt kill quit terminate down off
        start add new create
        enroll invite install claim certificate key rotate init add new create make register generate issue
        schedule new create
        revoke remove forget evict purge retire withdraw release stop delete del rm uninstall erase destroy unregister
        cancel remove delete del rm
        disconnect kick close end
        renew rotate refresh extend reissue update
        allow permit enable
        claim own take
        label set edit update
        activate pair join login enroll
        advance forward move set ahead skip jump travel back rewind
        show get now time
        retry resend requeue repeat again replay
        revive undelete resurrect restore
        check validate lint verify
        doctor diagnose debug
        init setup configure initialize
        restore recover
        backup export dump save snapshot
        console admin web ui dashboard
        inspect decode parse
        drill chaos fault
        schema ddl sql tables
        """
        .split(separator: "\n").map { $0.split(separator: " ").map(String.init) }

    /// The most likely word; nil if none is similar.
    package static func to(_ typed: String, among words: [String]) -> String? {
        all(to: typed, among: words).first
    }

    /// The most likely words, three at most, the best ones first; none if none is similar.
    package static func all(to typed: String, among words: [String]) -> [String] {
        let meant = byMeaning(typed, among: words)
        return meant.isEmpty ? bySpelling(typed, among: words) : meant
    }

    /// The words that say the same: in another spelling, by another tool's word, or in more or fewer parts.
    package static func byMeaning(_ typed: String, among words: [String]) -> [String] {
        let typed = plain(typed)
        let same = words.filter { plain($0) == typed }
        guard same.isEmpty else { return same }
        let alike = words.filter { singular(plain($0)) == singular(typed) }
        guard alike.isEmpty else { return alike }
        let groups = meanings.filter { $0.contains(typed) || $0.contains(singular(typed)) }
        var meant: [String] = []
        for word in groups.joined() where words.contains(word) && !meant.contains(word) { meant.append(word) }
        guard meant.isEmpty else { return Array(meant.prefix(3)) }
        let parts = typed.split(separator: "-")
        return best(words) { word in
            let others = plain(word).split(separator: "-")
            guard covers(parts, others) || covers(others, parts) else { return nil }
            return abs(parts.count - others.count)
        }
    }

    /// The words with the fewest other characters.
    package static func bySpelling(_ typed: String, among words: [String]) -> [String] {
        let typed = plain(typed)
        return best(words) { word in
            let distance = LikelyKey.distance(Array(typed), Array(plain(word)))
            return distance <= max(1, word.count / 3) ? distance : nil
        }
    }

    /// The words with the lowest rank; nil takes a word out.
    private static func best(_ words: [String], _ rank: (String) -> Int?) -> [String] {
        let ranked = words.compactMap { word in rank(word).map { (word, $0) } }
        let lowest = ranked.map(\.1).min()
        return ranked.filter { $0.1 == lowest }.map(\.0)
    }

    /// The word as it would be spelled: `apiPort`, `API_PORT` and `api-port` are the same.
    private static func plain(_ word: String) -> String {
        var text = ""
        for character in word.prefix(64) {
            if character.isUppercase, text.last?.isLowercase ?? false { text.append("-") }
            text.append(character == "_" || character == "." ? "-" : character)
        }
        return text == text.uppercased()
            ? text.lowercased() : text.split(separator: "-").joined(separator: "-").lowercased()
    }

    private static func singular(_ word: String) -> String {
        word.count > 3 && word.hasSuffix("s") ? String(word.dropLast()) : word
    }

    /// Whether each part begins one of the others: `cert` those of `certificate`, `port` those of `api-port`.
    private static func covers(_ parts: [Substring], _ others: [Substring]) -> Bool {
        !parts.isEmpty
            && parts.allSatisfy { part in
                others.contains { $0 == part || part.count >= 3 && $0.hasPrefix(part) }
            }
    }
}
