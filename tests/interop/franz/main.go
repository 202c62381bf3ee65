// Writes to and reads from a topic with franz-go, which logs in with SCRAM-SHA-512.
//
//	franz produce ADDRESS USER PASSWORD TOPIC VALUE...
//	franz consume ADDRESS USER PASSWORD TOPIC GROUP COUNT
//
// It prints what it read, one value a line, or the error, and then ends with 1.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(action string, arguments []string) error {
	address, user, password, topic, rest := arguments[0], arguments[1], arguments[2], arguments[3], arguments[4:]
	options := []kgo.Opt{
		kgo.SeedBrokers(address),
		kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()),
		kgo.RecordRetries(3),
		kgo.RetryTimeout(5 * time.Second),
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if action == "consume" {
		options = append(options, kgo.ConsumeTopics(topic), kgo.ConsumerGroup(rest[0]),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := client.Ping(ctx); err != nil {
		return err
	}
	if action == "produce" {
		for _, value := range rest {
			record := &kgo.Record{Topic: topic, Value: []byte(value)}
			if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
				return err
			}
		}
		return nil
	}
	return consume(ctx, client, rest[1])
}

func consume(ctx context.Context, client *kgo.Client, count string) error {
	left, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	for left > 0 {
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			return err
		}
		fetches.EachRecord(func(record *kgo.Record) {
			fmt.Println(string(record.Value))
			left--
		})
	}
	return nil
}
