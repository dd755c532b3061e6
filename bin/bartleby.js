#!/usr/bin/env -S node --max-semi-space-size=4
/*
 * The command. In the repository it runs the sources, and where the running Node is too old for them, it starts
 * itself again on the pinned Node, a development package. Installed from npm there are no sources: it runs the
 * build, on the user's Node. Plain JavaScript for Node 20.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import module from 'node:module'
import { constants } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import v8 from 'node:v8'

const OLDEST_NODE = 24

// A server makes much garbage in short bursts. Without this limit, and the one on the semi-space, which Node takes
// only when it starts, memory under load grows to 330 MB instead of 180 MB.
v8.setFlagsFromString('--heap-growing-percent=30')
const SEMI_SPACE = '--max-semi-space-size=4'

// Compiled code is kept for the next start, which takes a third less of it. Older Nodes know no such thing.
module.enableCompileCache?.()

const sources = new URL('../src/cli/main.ts', import.meta.url)
const inRepository = existsSync(sources)

// The reader of a pipe may leave early (`bartleby … | head`); that is no failure.
process.stdout.on('error', (error) => {
  if (error.code === 'EPIPE') process.exit()
  console.error(`bartleby: the output cannot be written: ${error.message}`)
  process.exit(1)
})

if (Number.parseInt(process.versions.node, 10) >= OLDEST_NODE) {
  const main = inRepository ? sources : new URL('../dist/cli/main.js', import.meta.url)
  const { run } = await import(main.href)
  process.exitCode = await run(process.argv.slice(2))
} else {
  runOnPinnedNode()
}

/** Starts the pinned Node with the same arguments; signals and the exit code pass through. */
function runOnPinnedNode() {
  const folder = fileURLToPath(new URL('../node_modules/node/bin', import.meta.url))
  const node = join(folder, process.platform === 'win32' ? 'node.exe' : 'node')
  if (!existsSync(node)) {
    const remedy = inRepository ? ' Run `npm ci` first: it brings its own.' : ''
    console.error(`bartleby: needs Node ${OLDEST_NODE} or newer, this is ${process.versions.node}.${remedy}`)
    process.exitCode = 1
    return
  }

  const command = [SEMI_SPACE, fileURLToPath(import.meta.url), ...process.argv.slice(2)]
  const child = spawn(node, command, { stdio: 'inherit' })
  const forwarded = ['SIGINT', 'SIGTERM', 'SIGHUP']
  for (const signal of forwarded) process.on(signal, () => child.kill(signal))
  child.on('error', (error) => {
    console.error(`bartleby: ${node} could not be started: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (constants.signals[signal] ?? 0)
  })
}
