/** `bartleby webhooks verify` on a store: its counts are what counting gives, also where the benchmark has loaded them. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

const program = join(import.meta.dirname, '../../bin/bartleby.js')

/** Throws with what it prints when a count differs. */
export async function verifyWebhooks(store: string): Promise<void> {
  const child = spawn(process.execPath, [program, 'webhooks', 'verify', '--store', store], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [printed, [code]] = await Promise.all([text(child.stdout), once(child, 'exit')])
  if (code !== 0) throw new Error(`webhooks verify ended with ${code}: ${printed.trim().slice(0, 500)}`)
}
