/**
 * Preloaded by servers on standby: loads what the server will need, then holds the start until something
 * arrives on standard input. What takes a second is then over when a test wants the server.
 */
import { once } from 'node:events'
import { flushCompileCache } from 'node:module'
import '../../src/cli/main.ts'
import '../../src/config/index.ts'
import '../../src/http/serve.ts'

// The process may be killed and never get to write what it compiled.
flushCompileCache()
await once(process.stdin, 'data')
process.stdin.destroy()
