/*
 * Runs before `npm start`, `npm test` and `npm run bench`: installs the dependencies when they are missing or
 * differ from package-lock.json, and does nothing (a few milliseconds) when they are in place.
 * Plain CommonJS for Node 20: on a fresh clone the pinned Node, itself a dependency, is not there yet.
 *
 *   node scripts/ensure-installed.cjs [--runtime]     --runtime: development packages may be missing
 */
'use strict'

const { spawnSync } = require('node:child_process')
const { existsSync, readFileSync } = require('node:fs')
const { join } = require('node:path')

const root = join(__dirname, '..')

/** The oldest Node that runs the sources, as `engines` in package.json says. */
const OLDEST_NODE = 24
const PINNED_NODE = 'node_modules/node'

/** The packages of a lock file by path, or undefined when it cannot be read. */
function lockedPackages(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages
  } catch {
    return undefined
  }
}

/** Why an install is needed, or undefined when none is. */
function reasonToInstall(folder, runtimeOnly, runningNode = process.versions.node) {
  // A development package, so that users of the library are spared its 100 MB; yet here a server needs it too,
  // unless the Node at hand is recent enough.
  const needsPinnedNode = !runtimeOnly || Number.parseInt(runningNode, 10) < OLDEST_NODE

  const wanted = lockedPackages(join(folder, 'package-lock.json'))
  if (wanted === undefined) throw new Error(`${join(folder, 'package-lock.json')} is missing or not JSON`)

  // npm writes this file last, so that its absence also tells of an install that was cut short.
  const present = lockedPackages(join(folder, 'node_modules', '.package-lock.json'))
  if (present === undefined) return 'they are not there yet'

  for (const [path, entry] of Object.entries(wanted)) {
    if (path === '') continue
    if (runtimeOnly && entry.dev && !(needsPinnedNode && path === PINNED_NODE)) continue
    const found = present[path]
    if (found === undefined) {
      // Packages for other platforms are optional and never installed here.
      if (entry.optional || entry.devOptional || entry.peer) continue
      return `${path} is missing`
    }
    if (found.version !== entry.version) return `${path} is ${found.version}, not ${entry.version}`
  }

  // The runtime is fetched by an install script, which npm skips when scripts are switched off.
  const runtime = join(folder, PINNED_NODE, 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
  return !needsPinnedNode || existsSync(runtime) ? undefined : 'the pinned Node was not fetched'
}

/** Runs `npm ci`; returns its exit code. Warnings about the old global Node are noise here and left out. */
function install(folder) {
  const npm = process.env.npm_execpath
  // Development packages even where NODE_ENV says production: the pinned Node is one.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']
  const [command, prefix] = npm?.endsWith('.js') ? [process.execPath, [npm]] : ['npm', []]
  const { status, error } = spawnSync(command, [...prefix, ...args], {
    cwd: folder,
    stdio: ['ignore', 'inherit', 'inherit'],
    shell: command === 'npm' && process.platform === 'win32',
  })
  if (error) console.error(`bartleby: npm could not be run: ${error.message}`)
  return status ?? 1
}

function main() {
  const reason = reasonToInstall(root, process.argv.includes('--runtime'))
  if (reason === undefined) return 0

  const startedAt = process.hrtime.bigint()
  console.log(`bartleby: installing dependencies (${reason}); this takes half a minute or so, once`)
  const code = install(root)
  if (code !== 0) {
    console.error(
      'bartleby: the dependencies could not be installed. Is the network reachable?\n' +
        '          The reason is in the lines above. `npm ci` in this folder repeats just this step.',
    )
    return code
  }
  const stillMissing = reasonToInstall(root, process.argv.includes('--runtime'))
  if (stillMissing !== undefined) {
    console.error(
      `bartleby: npm finished, yet ${stillMissing}. Are install scripts switched off in npm's settings?`,
    )
    return 1
  }
  const seconds = Number((process.hrtime.bigint() - startedAt) / 1_000_000n) / 1000
  console.log(`bartleby: dependencies installed in ${seconds.toFixed(0)} s`)
  return 0
}

if (require.main === module) process.exitCode = main()

module.exports = { reasonToInstall }
