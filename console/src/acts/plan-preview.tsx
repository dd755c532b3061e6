/** The first letters of a plan: for a retry with what a dry run says about each, else with whether the act is possible. */
import { Loader, ScrollArea, Table, Text } from '@mantine/core'
import { useEffect, useState } from 'react'
import { bytesOf } from '../../../src/client/bytes.ts'
import { reasonOf } from '../api/call.ts'
import type { LetterItem } from '../api/types.ts'
import { LetterLink } from '../kit/links.tsx'
import { StatusBadge } from '../kit/status.tsx'
import { byteSize } from '../time/format.ts'
import { previewRetry } from './calls.ts'
import { errorLine } from './error-line.ts'
import { nameOf } from './letter-name.ts'
import { eachAtOnce } from './outcomes.ts'
import type { Act } from './run.ts'

export interface Verdict {
  readonly isPossible: boolean
  readonly says: string
}

export interface PlanPreviewProps {
  readonly act: Act
  readonly letters: readonly LetterItem[]
  readonly planned: number
}

export function PlanPreview({ act, letters, planned }: PlanPreviewProps) {
  const dryRuns = useDryRuns(act === 'retry' ? letters : NONE)
  const verdicts = letters.map((letter) =>
    act === 'retry' ? dryRuns.get(nameOf(letter)) : verdictOf(act, letter),
  )
  const refused = verdicts.filter((verdict) => verdict?.isPossible === false).length
  const known = verdicts.filter((verdict) => verdict !== undefined).length
  return (
    <div>
      <Text size="sm" fw={600} mb={4} role="status">
        {planned > letters.length ? `The first ${letters.length} of them` : 'The letters'}
        {act === 'retry' && known === letters.length && `: ${sum(letters.length - refused, refused)}`}
      </Text>
      <ScrollArea.Autosize mah="16rem" className="plan-letters" viewportProps={{ tabIndex: 0 }}>
        <Table aria-label="First letters of the plan" verticalSpacing={4} fz="sm">
          <Table.Thead>
            <Table.Tr>
              <Table.Th scope="col">Letter</Table.Th>
              {act === 'restore' && <Table.Th scope="col">Status</Table.Th>}
              <Table.Th scope="col">Error</Table.Th>
              <Table.Th scope="col">{act === 'retry' ? 'Dry run' : 'Then'}</Table.Th>
            </Table.Tr>
          </Table.Thead>
          <Table.Tbody>
            {letters.map((letter, index) => (
              <Table.Tr key={nameOf(letter)}>
                <Table.Td className="letter-name">
                  <LetterLink letter={letter}>
                    {letter.engine} {letter.instanceId}
                  </LetterLink>
                </Table.Td>
                {act === 'restore' && (
                  <Table.Td>
                    <StatusBadge letter={letter} />
                  </Table.Td>
                )}
                <Table.Td className="one-line" title={errorLine(letter)}>
                  {errorLine(letter)}
                </Table.Td>
                <Table.Td className="verdict">
                  <VerdictText verdict={verdicts[index]} />
                </Table.Td>
              </Table.Tr>
            ))}
          </Table.Tbody>
        </Table>
      </ScrollArea.Autosize>
    </div>
  )
}

const NONE: readonly LetterItem[] = []

const sum = (possible: number, refused: number): string =>
  refused === 0 ? `all ${possible} can be sent` : `${possible} can be sent, ${refused} cannot`

function VerdictText({ verdict }: { readonly verdict: Verdict | undefined }) {
  if (verdict === undefined) return <Loader size={12} aria-label="Dry run under way" />
  return (
    <>
      <span aria-hidden>{verdict.isPossible ? '✓ ' : '✗ '}</span>
      {verdict.isPossible ? '' : 'Not possible: '}
      {verdict.says}
    </>
  )
}

function verdictOf(act: Act, letter: LetterItem): Verdict {
  const isPending = letter.status === 'Pending'
  if (act === 'discard') {
    return isPending
      ? { isPossible: true, says: 'Ends, and is not sent' }
      : { isPossible: false, says: `it is ${letter.status}, and will be skipped` }
  }
  if (isPending) return { isPossible: false, says: 'it is pending already, and will be skipped' }
  if (letter.confirmedAtUtc !== null) return { isPossible: true, says: 'Pending, although it was processed' }
  return { isPossible: true, says: 'Pending again' }
}

/** What dry runs say, letter by letter as they come in. */
function useDryRuns(letters: readonly LetterItem[]): ReadonlyMap<string, Verdict> {
  const [verdicts, setVerdicts] = useState<ReadonlyMap<string, Verdict>>(new Map())
  useEffect(() => {
    const stop = new AbortController()
    setVerdicts(new Map())
    void eachAtOnce(letters, async (letter) => {
      const verdict = await dryRun(letter, stop.signal)
      if (!stop.signal.aborted) setVerdicts((before) => new Map(before).set(nameOf(letter), verdict))
    })
    return () => stop.abort()
  }, [letters])
  return verdicts
}

async function dryRun(letter: LetterItem, signal: AbortSignal): Promise<Verdict> {
  try {
    const { queue, payload, payloadEncoding, edited } = await previewRetry(letter, undefined, signal)
    const size = byteSize(bytesOf(payload, payloadEncoding).length)
    return { isPossible: true, says: `${size} to ${queue}${edited ? ', edited' : ''}` }
  } catch (error) {
    return { isPossible: false, says: reasonOf(error) }
  }
}
