import Testing

@testable import HeraldCommand
@testable import HeraldService

@Suite struct IndependentLoopsTests {
    @Test(.timeLimit(.minutes(10))) func `a task that hangs delays no other, and ends when it is cancelled`() async {
        let (runs, run) = AsyncStream.makeStream(of: Void.self)
        let (endings, ending) = AsyncStream.makeStream(of: Void.self)
        let (nothing, _) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup { group in
            group.addTask {
                await IndependentLoops.run(
                    pause: .milliseconds(1),
                    [
                        {
                            for await _ in nothing {}
                            ending.yield()
                        },
                        { run.yield() },
                    ]
                )
            }
            var count = 0
            for await _ in runs where count < 3 {
                count += 1
                if count == 3 { break }
            }
            group.cancelAll()
            for await _ in endings { break }
        }
    }
}
