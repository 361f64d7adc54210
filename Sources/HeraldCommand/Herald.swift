import ArgumentParser

@main struct Herald: ParsableCommand { func run() {} }
