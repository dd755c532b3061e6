/** `bartleby letters show`: one letter, for people, as JSON, or its payload alone. */
import type { Command } from 'commander'
import { bytesOf } from '../../client/bytes.ts'
import { withOffice } from '../office-call.ts'
import { type ConnectionFlags, serverCommand } from '../queues/connection.ts'
import { styleOf } from '../style.ts'
import type { Terminal } from '../terminal.ts'
import { nowMs } from '../times.ts'
import { caseFile } from './case-file.ts'
import { letterNamed } from './find.ts'

interface ShowFlags extends ConnectionFlags {
  readonly payload?: boolean
}

export function showCommand(terminal: Terminal): Command {
  return serverCommand(
    'show <engine> <rowKey>',
    'Show a letter with its case file: error, timeline, payload, headers, provenance.',
    [
      'show hmac i-7-20270110T090000000000Z',
      'show queues 2mQ7d1VxJ0b6bM3nS9t8YkLfHcE       an instance will do where it has one letter',
      'show hmac i-7-20270110T090000000000Z --payload > payload.bin',
      "show hmac i-7-20270110T090000000000Z --json | jq '.attempts[].errorMessage'",
    ],
    'letters',
  )
    .option('--payload', 'write the payload to stdout, byte for byte, and nothing else')
    .action((engine: string, rowKey: string, flags: ShowFlags) =>
      withOffice(flags, terminal, async (office) => {
        const letter = await letterNamed(office, { engine, rowKey })
        if (flags.payload) {
          return terminal.write(bytesOf(letter.originalMessage, letter.originalMessageEncoding))
        }
        terminal.out(
          flags.json ? JSON.stringify(letter, null, 2) : caseFile(letter, nowMs(), styleOf(terminal)),
        )
      }),
    )
}
