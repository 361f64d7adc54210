import ArgumentParser
import HeraldService

/// The check that an option with a text has one: the variable of a script may be empty.
enum EmptyText {
    /// - Throws: `ValidationError` that names the first option whose text is empty.
    static func refuse(_ options: [(name: String, text: String?)]) throws {
        guard let empty = options.first(where: { $0.text?.isEmpty == true }) else { return }
        throw ValidationError("--\(empty.name) is empty: give it a text, or leave it out.")
    }
}

extension ValidationError {
    /// Says that a text of the command line is not what it must be, like `a label, like room=hall`.
    init(_ text: String, isNot wanted: String) {
        self.init("'\(LogText.escaped(text, limit: 64))' is not \(wanted).")
    }
}
