/** What will be sent against what came, line by line. The comparison is loaded when it is first needed. */
import { Checkbox, Text } from '@mantine/core'
import { useDeferredValue, useEffect, useMemo, useState } from 'react'
import { indentJson } from '../../../src/core/json/tokens.ts'
import { visible } from '../kit/visible.ts'
import { type DiffLine, shownLines } from './diff-lines.ts'
import { compact } from './exact-json.ts'

/** Texts that differ in everything would take minutes. */
const LONGEST_MS = 1_500

export interface DiffViewProps {
  readonly before: string
  readonly after: string
}

type Found = readonly DiffLine[] | 'too different' | 'not loaded' | null

export function DiffView({ before, after }: DiffViewProps) {
  const latest = useDeferredValue(after)
  const [isIndented, setIndented] = useState(true)
  const forms = useMemo(() => [indentJson(before), indentJson(latest)] as const, [before, latest])
  const areJson = forms[0] !== null && forms[1] !== null
  const [from, to] = isIndented && areJson ? [forms[0] ?? before, forms[1] ?? latest] : [before, latest]
  const found = useDiff(from, to)
  const isOnlySpace = areJson && before !== latest && compact(before) === compact(latest)
  return (
    <div>
      {areJson && (
        <Checkbox
          size="xs"
          mb="xs"
          label="Compare indented: a line for each value"
          checked={isIndented}
          onChange={(event) => setIndented(event.currentTarget.checked)}
        />
      )}
      {isOnlySpace && <Text size="sm">Only white space differs; the values are the same.</Text>}
      {found === 'too different' && <Text size="sm">Nearly every line differs.</Text>}
      {found === 'not loaded' && (
        <Text size="sm" role="alert">
          It could not be compared: the server does not answer. Change the text to try again.
        </Text>
      )}
      {found === null && <Text size="sm">Comparing…</Text>}
      {Array.isArray(found) && found.length === 0 && !isOnlySpace && <Text size="sm">Nothing differs.</Text>}
      {Array.isArray(found) && found.length > 0 && <Lines lines={found} />}
    </div>
  )
}

function useDiff(before: string, after: string): Found {
  const [found, setFound] = useState<Found>(null)
  useEffect(() => {
    let isCurrent = true
    const compare = async () => {
      const { diffLines } = await import('diff')
      if (!isCurrent) return
      const changes = diffLines(before, after, { timeout: LONGEST_MS })
      setFound(changes === undefined ? 'too different' : shownLines(changes))
    }
    compare().catch(() => {
      if (isCurrent) setFound('not loaded')
    })
    return () => {
      isCurrent = false
    }
  }, [before, after])
  return found
}

const WORDS: Readonly<Record<DiffLine['sign'], string>> = { '+': 'new: ', '-': 'gone: ', ' ': '', '…': '' }

function Lines({ lines }: { readonly lines: readonly DiffLine[] }) {
  return (
    <pre className="bytes diff framed">
      {lines.map(({ sign, text }, place) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: lines repeat
        <span key={place} data-sign={sign}>
          <span aria-hidden>{sign} </span>
          <span className="announcer">{WORDS[sign]}</span>
          {visible(text)}
          {'\n'}
        </span>
      ))}
    </pre>
  )
}
