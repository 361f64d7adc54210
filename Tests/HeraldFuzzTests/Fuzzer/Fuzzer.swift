import CFuzzer

#if canImport(Glibc)
import Glibc
#endif

/// Runs libFuzzer on one target; `scripts/fuzz` starts it.
///
/// The variable `HERALD_FUZZ_TARGET` names the target: libFuzzer starts its own processes with the same arguments.
/// Without it, lists the targets with the longest input of each. Arguments are libFuzzer's.
@main
enum Fuzzer {
    static let target = getenv("HERALD_FUZZ_TARGET").flatMap { FuzzTarget.named(String(cString: $0)) }

    static func main() {
        guard target != nil else {
            for target in FuzzTarget.all { print(target.name, target.maximumBytes) }
            return
        }
        var count = CommandLine.argc
        var arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>? = CommandLine.unsafeArgv
        let code = LLVMFuzzerRunDriver(&count, &arguments) { bytes, count in
            Fuzzer.target?.body(Array(UnsafeBufferPointer(start: bytes, count: count)))
            return 0
        }
        exit(code)
    }
}
