/** What is done with all dead jobs of a consumer. Before that it is said how many there are, and what will become of them. */
import { Alert, Button, Code, Group, Modal, Stack, Text, TextInput } from '@mantine/core'
import { useMutation, useQueryClient } from '@tanstack/react-query'
import { type FormEvent, type ReactNode, useState } from 'react'
import { reasonOf } from '../api/call.ts'
import { Count } from '../kit/links.tsx'
import { grouped } from '../time/format.ts'
import { useToasts } from '../toasts/toasts.tsx'
import { actOn, type Consumer, deadLettersOf } from './webhook-queries.ts'

export interface DeadJobActProps {
  /** undefined: closed. */
  readonly consumer: Consumer | undefined
  close(): void
}

/** Requeues them all. */
export function RequeueDead({ consumer, close }: DeadJobActProps) {
  return (
    <Dialog title="Requeue all dead jobs" consumer={consumer} close={close}>
      {(of) => <Requeue consumer={of} close={close} />}
    </Dialog>
  )
}

/** Erases them all. */
export function PurgeDead({ consumer, close }: DeadJobActProps) {
  return (
    <Dialog title="Purge all dead jobs" consumer={consumer} close={close}>
      {(of) => <Purge consumer={of} close={close} />}
    </Dialog>
  )
}

interface DialogProps extends DeadJobActProps {
  readonly title: string
  readonly children: (consumer: Consumer) => ReactNode
}

function Dialog({ title, consumer, close, children }: DialogProps) {
  return (
    <Modal
      opened={consumer !== undefined}
      onClose={close}
      title={title}
      size="lg"
      closeButtonProps={{ 'aria-label': 'Close' }}
    >
      {consumer !== undefined && children(consumer)}
    </Modal>
  )
}

interface ActProps {
  readonly consumer: Consumer
  close(): void
}

function Requeue({ consumer, close }: ActProps) {
  const { dead, consumerId, channelId } = consumer
  const requeue = useDeadJobAct(
    consumer,
    'requeue',
    close,
    () => `The dead jobs of ${consumerId} are being requeued`,
  )
  return (
    <Stack>
      <Text className="prose">
        <DeadJobs consumer={consumer} /> of <strong>{consumerId}</strong> on <strong>{channelId}</strong>{' '}
        {dead === 1 ? 'starts' : 'start'} over, with all attempts anew.{' '}
        {dead === 1 ? 'Its letter is' : 'Their letters are'} resolved by retry; those that are delivered are
        confirmed, those that die again come back.
      </Text>
      {consumer.state === 'paused' && (
        <Alert role="note" color="yellow" title="Deliveries to this consumer are paused">
          The jobs wait until the pause ends. Mend the consumer first, then resume it.
        </Alert>
      )}
      <Command act="requeue" consumer={consumer} />
      <Ending error={requeue.error} close={close}>
        <Button loading={requeue.isPending} disabled={dead === 0} onClick={() => requeue.mutate()}>
          Requeue {grouped(dead)}
        </Button>
      </Ending>
    </Stack>
  )
}

function Purge({ consumer, close }: ActProps) {
  const { dead, consumerId, channelId } = consumer
  const [typed, setTyped] = useState('')
  const purge = useDeadJobAct<{ readonly purged: number }>(consumer, 'purge', close, ({ purged }) =>
    purged === 1 ? '1 dead job is erased' : `${grouped(purged)} dead jobs are erased`,
  )
  const isRight = typed.replaceAll(',', '').trim() === String(dead)
  const submit = (event: FormEvent) => {
    event.preventDefault()
    if (isRight && dead > 0) purge.mutate()
  }
  return (
    <form onSubmit={submit}>
      <Stack>
        <Text className="prose">
          <DeadJobs consumer={consumer} /> of <strong>{consumerId}</strong> on <strong>{channelId}</strong>{' '}
          {dead === 1 ? 'is' : 'are'} erased for good, with {dead === 1 ? 'its letter' : 'their letters'}.
          This cannot be undone; to keep the letters, discard them instead.
        </Text>
        <TextInput
          label={`Type ${dead} to confirm`}
          description="The number of dead jobs as it is now"
          inputMode="numeric"
          autoComplete="off"
          data-autofocus
          value={typed}
          onChange={(event) => setTyped(event.currentTarget.value)}
        />
        <Command act="purge" consumer={consumer} />
        <Ending error={purge.error} close={close}>
          <Button type="submit" color="red" loading={purge.isPending} disabled={!isRight || dead === 0}>
            Purge {grouped(dead)}
          </Button>
        </Ending>
      </Stack>
    </form>
  )
}

function useDeadJobAct<Answer>(
  consumer: Consumer,
  act: 'requeue' | 'purge',
  close: () => void,
  done: (answer: Answer) => string,
) {
  const client = useQueryClient()
  const toasts = useToasts()
  return useMutation({
    mutationFn: () => actOn<Answer>(consumer, act),
    onSuccess: (answer) => {
      toasts.show({ title: done(answer) })
      close()
      void client.invalidateQueries({ queryKey: ['webhook-runs'] })
      return client.invalidateQueries({ queryKey: ['webhooks'] })
    },
  })
}

function DeadJobs({ consumer }: { readonly consumer: Consumer }) {
  const { dead, consumerId } = consumer
  return (
    <>
      <Count of={dead} filter={deadLettersOf(consumer)} label={`dead jobs of ${consumerId}`} />{' '}
      {dead === 1 ? 'dead job' : 'dead jobs'}
    </>
  )
}

function Command({
  act,
  consumer: { channelId, consumerId },
}: {
  readonly act: string
  readonly consumer: Consumer
}) {
  return (
    <Text size="sm" component="div">
      The same on the command line:
      <Code block>{`bartleby webhooks ${act} ${channelId} ${consumerId}`}</Code>
    </Text>
  )
}

function Ending({
  error,
  close,
  children,
}: {
  readonly error: Error | null
  readonly close: () => void
  readonly children: ReactNode
}) {
  return (
    <>
      {error !== null && (
        <Alert color="red" role="alert" title="It was not done">
          {reasonOf(error)}
        </Alert>
      )}
      <Group justify="flex-end">
        <Button variant="default" onClick={close}>
          Cancel
        </Button>
        {children}
      </Group>
    </>
  )
}
