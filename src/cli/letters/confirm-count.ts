/** Before many letters are changed: says how many they are, and goes on when that is what is meant. */
import { CommandFailure, EXIT, usage } from '../exit.ts'
import type { Terminal } from '../terminal.ts'

/** Goes on only when `--yes` was given or a person types how many letters it is. */
export async function confirmCount(
  plan: string,
  count: number,
  { yes, json }: { readonly yes?: boolean; readonly json?: boolean },
  terminal: Terminal,
): Promise<void> {
  if (yes) {
    if (!json) terminal.err(`this will ${plan}`)
    return
  }
  if (!terminal.stdin.isTTY) throw usage(`this will ${plan}; add --yes to go on`)
  const answer = await terminal.ask(`This will ${plan}. Type the number to go on: `)
  if (answer.replace(/[\s,.]/g, '') === String(count)) return
  throw new CommandFailure(EXIT.failed, 'nothing was changed')
}
