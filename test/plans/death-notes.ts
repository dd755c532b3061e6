/** What captures are told about deaths, each with a note of its own. */
import { instant } from '../../src/core/clock.ts'
import { PLAIN_RECORD } from '../../src/letters/bury.ts'
import { noteLists } from '../../src/letters/capture.ts'
import type { SourceName } from '../../src/letters/kinds.ts'
import { type List, listFor } from '../../src/store/database.ts'
import { type Argument, NOW } from './explain.ts'

/** So many notes, as the last values of a capture. */
export const deathNotes = (many: number, source: SourceName): readonly Argument[] =>
  notes(many, source).map((list) => listFor('postgres', list))

/** The one note of a capture of deaths that share it. */
export const deathNote = (source: SourceName): readonly Argument[] =>
  // No note has bytes.
  notes(1, source).map(([value = null]) => value as Argument)

const notes = (many: number, source: SourceName): readonly List[] =>
  noteLists(
    Array.from({ length: many }, (_, i) => ({
      ...{
        source,
        engine: source,
        queue: null,
        drawer: 1,
        series: 1,
        instanceId: null,
        reason: 'failed' as const,
      },
      correlationId: source === 'queues' ? null : `${source}-${i + 1}`,
      ...{ errorClass: 'Error', errorMessage: 'it failed', errorStack: null, failedBy: null },
      ...{ capturedAt: instant(NOW), firstFailureAt: instant(NOW), lastFailureAt: instant(NOW) },
      record: { ...PLAIN_RECORD, operation: 'capture' },
    })),
  )
