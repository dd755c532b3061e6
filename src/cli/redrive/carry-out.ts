/** A redrive from its start to its account: watched or not, waited for or not. */

import type { RedriveDetail } from '../../client/redrive-types.ts'
import { CommandFailure, EXIT } from '../exit.ts'
import type { OfficeServer } from '../office-call.ts'
import type { Terminal } from '../terminal.ts'
import { follow } from './follow.ts'
import { failureOf } from './verdict.ts'
import { accountOf } from './watch-frame.ts'

export interface Manner {
  /** How long outcomes are waited for after the end; null: they are not. */
  readonly waitMs: number | null
  readonly json?: boolean
  /** ` --url …` or ` --store …`, so that commands that are named find the same office. */
  readonly place: string
  /** Who goes on with it when this command ends. */
  readonly goesOn: string
}

/** Watches a redrive to its end, tells what became of it, and fails unless that is what was asked for. */
export async function seeThrough(
  office: OfficeServer,
  started: RedriveDetail,
  { waitMs, json = false, place, goesOn }: Manner,
  terminal: Terminal,
): Promise<void> {
  const { redrive, left } = await follow(office, started, { waitMs, json }, terminal)
  terminal.out(json ? JSON.stringify(redrive, null, 2) : accountOf(redrive))
  if (left) {
    throw new CommandFailure(
      EXIT.failed,
      `left before its end; ${goesOn}. Look again with: bartleby redrive watch ${redrive.id}${place}\n  end it with: bartleby redrive cancel ${redrive.id}${place}`,
    )
  }
  const failure = await failureOf(office, redrive, { waited: waitMs !== null })
  if (failure === null) return
  const next = redrive.state === 'paused' ? `; go on with: bartleby redrive resume ${redrive.id}${place}` : ''
  throw new CommandFailure(EXIT.failed, `${failure}${next}`)
}
