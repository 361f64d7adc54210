import ArgumentParser
import HeraldExam

/// The sender that `herald exam` examines.
struct ExamSenderOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp("A program that reads orders and writes outcomes as lines of JSON.", valueName: "command")
    )
    var adapter: String?

    @Option(
        help: ArgumentHelp(
            "A command that sends a batch and ends: once for {tokens}, the file of the device tokens, or for each {token}; also {host}, "
                + "{port}, {ca}, {key}, {key_id}, {team}, {topic} and {payload}, a file.",
            valueName: "command"
        )
    )
    var run: String?

    @Option(
        help: ArgumentHelp(
            "A server that sends what is posted to it: {\"tokens\":[…],\"payload\":{…}}.",
            valueName: "url"
        )
    )
    var hook: String?

    @Option(help: ArgumentHelp("The sender's name in reports.", valueName: "name"))
    var name: String?

    /// - Throws: `ValidationError` unless they name one sender that can be driven.
    func check() throws {
        guard [adapter, run, hook].count(where: { $0 != nil }) == 1 else {
            throw ValidationError("name one sender: --adapter, --run or --hook")
        }
        if let run, !run.contains("{tokens}"), !run.contains("{token}") {
            throw ValidationError("the command of --run needs {tokens} or {token}, or it cannot know whom to send to")
        }
    }

    var kind: SenderKind {
        if let adapter { .adapter(adapter) } else if let run { .command(run) } else { .hook(hook ?? "") }
    }

    var title: String { name ?? adapter ?? run ?? hook ?? "" }
}
