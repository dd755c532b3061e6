/** The plan: what will happen to how many letters, before anything does. */
import { Alert, Button, Group, Modal, NumberInput, Stack, Text, Textarea, TextInput } from '@mantine/core'
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useLocation } from '@tanstack/react-router'
import { useEffect, useRef, useState } from 'react'
import { ActButton } from '../kit/act-button.tsx'
import { LettersLink } from '../kit/links.tsx'
import { Shown } from '../kit/page.tsx'
import { grouped } from '../time/format.ts'
import './acts.css'
import { letterCommand, walkCommand } from './commands.ts'
import { CopiedCommand } from './copied-command.tsx'
import type { PlanRequest } from './plan-context.ts'
import { type PlanNumbers, planQuery } from './plan-numbers.ts'
import { PlanPreview } from './plan-preview.tsx'
import { MEANINGS, NOTHING, sentenceOf } from './plan-walks.ts'
import { useRuns } from './runs-context.ts'

const TITLES = { retry: 'Plan a retry', discard: 'Plan a discard', restore: 'Plan a restore' } as const
const STARTS = { retry: 'Retry', discard: 'Discard', restore: 'Restore' } as const
const MOST_PER_SECOND = 1_000

export interface PlanProps {
  /** null: closed. */
  readonly request: PlanRequest | null
  readonly close: () => void
}

export function Plan({ request, close }: PlanProps) {
  const { href } = useLocation()
  const openedAt = useRef(href)
  if (request === null) openedAt.current = href
  // A link in the plan leads away from it.
  const hasLeft = request !== null && openedAt.current !== href
  useEffect(() => {
    if (hasLeft) close()
  }, [hasLeft, close])
  return (
    <Modal
      opened={request !== null}
      onClose={close}
      size="xl"
      title={request === null ? '' : TITLES[request.act]}
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {request !== null && <Numbers request={request} close={close} />}
    </Modal>
  )
}

/** Each plan that is opened reads its own numbers. */
let plans = 0

function Numbers({ request, close }: { readonly request: PlanRequest; readonly close: () => void }) {
  const client = useQueryClient()
  const [id] = useState(() => ++plans)
  const numbers = useQuery(planQuery(request, id, client))
  return (
    <Shown read={numbers} what="what it is about">
      {(found) =>
        found.planned === 0 ? (
          <Stack>
            <Text>{NOTHING[request.act]}</Text>
            <Group justify="flex-end">
              <Button variant="default" onClick={close} data-autofocus>
                Close
              </Button>
            </Group>
          </Stack>
        ) : (
          <Decision request={request} numbers={found} close={close} />
        )
      }
    </Shown>
  )
}

interface DecisionProps {
  readonly request: PlanRequest
  readonly numbers: PlanNumbers
  readonly close: () => void
}

function Decision({ request, numbers, close }: DecisionProps) {
  const { act, what, filter, keys } = request
  const { planned, isCapped, walks, first } = numbers
  const { start } = useRuns()
  const [reason, setReason] = useState('')
  const [perSecond, setPerSecond] = useState<number | null>(null)
  const [typed, setTyped] = useState('')
  const reasonField = useRef<HTMLTextAreaElement>(null)
  // Where the numbers come after the dialog has chosen what to focus.
  useEffect(() => reasonField.current?.focus({ preventScroll: true }), [])
  const sentence = sentenceOf(act, planned, what)
  const mustType = act === 'discard' && planned > 1
  const refusal =
    act === 'discard' && reason.trim() === ''
      ? 'Say why first: the reason is kept with each letter.'
      : mustType && typed.replace(/\D/g, '') !== String(planned)
        ? `Type ${planned} first.`
        : null
  const begin = () => {
    start({ act, sentence, what, filter, walks, keys: keys ?? null, planned, reason, perSecond })
    close()
  }
  return (
    <Stack gap="md">
      <div>
        <Text fw={600} className="plan-sentence">
          {sentence}.
        </Text>
        <Text size="sm">
          {MEANINGS[act]} Four go at a time, the newest first; what moved on meanwhile is skipped.
        </Text>
        <Lists numbers={numbers} />
      </div>
      {isCapped && (
        <Alert color="yellow" title={`There are more than ${grouped(planned)}`}>
          Counting ends there, so this run takes the newest {grouped(planned)}. Plan again for the rest.
        </Alert>
      )}
      <PlanPreview act={act} letters={first} planned={planned} />
      <Group align="flex-start" grow preventGrowOverflow={false}>
        <Textarea
          label="Reason"
          description={
            act === 'discard' ? 'Kept with each letter.' : 'Optional; kept in the history of each letter.'
          }
          required={act === 'discard'}
          autosize
          minRows={1}
          maxLength={4_000}
          data-autofocus
          ref={reasonField}
          value={reason}
          onChange={(event) => setReason(event.currentTarget.value)}
        />
        <NumberInput
          label="At most per second"
          description="Optional; left empty, as fast as they are answered."
          min={1}
          max={MOST_PER_SECOND}
          allowDecimal={false}
          value={perSecond ?? ''}
          onChange={(value) => setPerSecond(typeof value === 'number' && value >= 1 ? value : null)}
        />
        {mustType && (
          <TextInput
            label={`Type ${grouped(planned)} to discard them`}
            description="So that nobody discards more than they think."
            inputMode="numeric"
            autoComplete="off"
            required
            value={typed}
            onChange={(event) => setTyped(event.currentTarget.value)}
          />
        )}
      </Group>
      <div>
        <Text size="sm" fw={600} mb={4}>
          The same on the command line
        </Text>
        <CopiedCommand text={commandOf(request, numbers, reason)} label="the command" />
      </div>
      <Text size="sm" c="var(--quiet)">
        It goes on in this tab while you look at other screens, and ends when the tab is closed.
      </Text>
      <Group gap="sm" justify="flex-end">
        <Button variant="default" onClick={close}>
          Leave it
        </Button>
        <ActButton
          needs="operator"
          refusal={refusal}
          onClick={begin}
          {...(act === 'discard' ? { color: 'red' } : {})}
        >
          {STARTS[act]} {grouped(planned)}
        </ActButton>
      </Group>
    </Stack>
  )
}

/** The lists behind the number, where there is more to say than the sentence does. */
function Lists({ numbers: { lists } }: { readonly numbers: PlanNumbers }) {
  return lists.map(({ filter, total }) => (
    <Text size="sm" key={filter.status}>
      <LettersLink filter={filter}>
        {grouped(total)} {filter.status?.toLowerCase()}
      </LettersLink>{' '}
      match now.
    </Text>
  ))
}

function commandOf({ act, keys }: PlanRequest, { lists, isCapped }: PlanNumbers, notes: string): string {
  if (keys !== undefined) return keys.map((key) => letterCommand(act, key, notes)).join('\n')
  return lists
    .filter(({ total }) => total > 0)
    .map(({ filter, total }) =>
      walkCommand(act, filter, { notes, limit: isCapped ? total : null, nowMs: Date.now() }),
    )
    .join('\n')
}
